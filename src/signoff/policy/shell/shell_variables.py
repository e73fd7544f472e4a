"""Variables in command lines: which ones a line may set unasked, and which may be printed. The names are in
`shell_variables.toml`."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple, cast

from signoff.policy.table_files import table_text

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,60}", re.ASCII)
"""None that starts with `_`: shells set those themselves."""


_CHANGES_PROGRAMS = re.compile(
    r"""(?: PATH | CDPATH | IFS | ENV | BASH_\w+ | SHELL | SHELLOPTS | BASHOPTS | PS[0-4] | PROMPT_COMMAND | EXECIGNORE
      | HOME | ZDOTDIR | GLOBIGNORE | FIGNORE | POSIXLY_CORRECT | TERMINFO | INPUTRC | HOST(?:FILE|ALIASES)
      | (?:LD|DYLD|GIT|GCONV|PYTHON|PERL5?|RUBY|NODE|JAVA|LUA|PHP|SSH|GPG|MAN|LESS|NPM|MAKE|TAR|RIPGREP)_?\w*
      | _JAVA_OPTIONS | JDK_JAVA_OPTIONS | CLASSPATH | CC | CXX | RUST\w* | CARGO\w* | GO(?:FLAGS|PATH|ROOT) | \w+_RSH
      | \w*PAGER | \w*EDITOR | VISUAL | BROWSER | \w*ASKPASS | \w*_OPTS | \w*OPTIONS | \w*_COMMAND | \w*_(?:PROXY|proxy)
      | XDG_\w+ | GREP_\w+ | LOCPATH | NLSPATH | OPENSSL_\w+ | CURL_HOME | WGETRC | DOCKER_\w+ | KUBECONFIG
      | \w+_ARGS\w* )\Z""",
    re.VERBOSE,
)


class _VariableTable(NamedTuple):
    special: frozenset[str]
    telling: re.Pattern[str]
    begin: re.Pattern[str]
    shown: frozenset[str]
    ends: re.Pattern[str]
    secret: re.Pattern[str]
    harmless: Mapping[str, re.Pattern[str]]


def changes_programs(name: str) -> bool:
    """Whether a variable of this name changes which programs run, or what they do."""
    return _CHANGES_PROGRAMS.match(name) is not None


def may_be_set(name: str) -> bool:
    """Whether a line may set a variable for itself: it means nothing to any shell, nor to the programs it may run."""
    known = _table()
    if not _NAME.fullmatch(name) or name in known.special or changes_programs(name) or changes_programs(name.upper()):
        return False
    return name.islower() or not (known.telling.fullmatch(name.upper()) or known.begin.fullmatch(name.lower()))


def may_be_kept(name: str) -> bool:
    """Whether a line that runs no program may set a variable: it means nothing to any shell."""
    known = _table()
    return bool(_NAME.fullmatch(name)) and name not in known.special and not changes_programs(name.upper())


def may_be_printed(name: str) -> bool:
    """Whether a variable may be printed of which the line does not say what it holds: it is not known to be secret."""
    known = _table()
    if name in known.shown:
        return True
    if not _NAME.fullmatch(name) or name in known.special or known.secret.search(name):
        return False
    return name.islower() or known.ends.fullmatch(name.rpartition("_")[2]) is not None


def is_harmless(name: str, value: str) -> bool:
    """Whether any command may be given a variable of this name with this value."""
    pattern = _table().harmless.get(name)
    return pattern is not None and pattern.fullmatch(value) is not None


@cache
def _table() -> _VariableTable:
    data = cast("Mapping[str, Any]", tomllib.loads(table_text("shell/shell_variables.toml")))
    harmless = {
        name: re.compile(value, re.ASCII) for value, names in data["harmless"].items() for name in names.split()
    }
    return _VariableTable(
        frozenset(data["special"].split()),
        re.compile(data["telling"], re.ASCII),
        re.compile(data["begin"], re.ASCII),
        frozenset(data["shown"].split()),
        re.compile(data["ends"], re.ASCII),
        re.compile(data["secret"], re.ASCII),
        harmless,
    )
