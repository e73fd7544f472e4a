"""Programs that run other commands: what a command hands on, found in its words."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple, cast

from signoff.policy.shell.literal import UNKNOWN, Arg
from signoff.policy.shell.runners import SPECIAL, Args, Inner, Out, joined, option_scripts, placed, run_code

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\[.*\])?\+?=", re.DOTALL)
_CHANGES_PROGRAMS = re.compile(
    r"""(?: PATH | CDPATH | IFS | ENV | BASH_\w+ | SHELL | SHELLOPTS | BASHOPTS | PS[0-4] | PROMPT_COMMAND | EXECIGNORE
      | HOME | ZDOTDIR | GLOBIGNORE | FIGNORE | POSIXLY_CORRECT | TERMINFO | INPUTRC | HOST(?:FILE|ALIASES)
      | (?:LD|DYLD|GIT|GCONV|PYTHON|PERL5?|RUBY|NODE|JAVA|LUA|PHP|SSH|GPG|MAN|LESS|NPM|MAKE|TAR|RIPGREP)_?\w*
      | _JAVA_OPTIONS | JDK_JAVA_OPTIONS | CLASSPATH | CC | CXX | RUST\w* | CARGO\w* | GO(?:FLAGS|PATH|ROOT) | \w+_RSH
      | \w*PAGER | \w*EDITOR | VISUAL | BROWSER | \w*ASKPASS | \w*_OPTS | \w*OPTIONS | \w*_COMMAND | \w*_(?:PROXY|proxy)
      | XDG_\w+ | GREP_\w+ | LOCPATH | NLSPATH | OPENSSL_\w+ | CURL_HOME | WGETRC | DOCKER_\w+ | KUBECONFIG )\Z""",
    re.VERBOSE,
)
_SSH_SETTING = re.compile(r"(?i)(?:-\w*?o)?\s*(\w+Command)\s*[=\s]\s*(.+)", re.DOTALL)
_RESERVED = frozenset("{ } ! if then elif else fi do done while until for select case esac function [[ ]] ((".split())
_SETTERS = frozenset("read mapfile readarray getopts let".split())
_SUBSCRIPT_BUILTINS = frozenset(
    "test [ printf unset let read declare typeset local export readonly mapfile readarray wait".split()
)


class Handed(NamedTuple):
    """What a command hands on, and what of it is not understood."""

    inner: tuple[Inner, ...] = ()
    opaque: tuple[str, ...] = ()


class _Spec(NamedTuple):
    flags: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()
    maybe: frozenset[str] = frozenset()
    script: frozenset[str] = frozenset()
    stops: frozenset[str] = frozenset()
    operands: int = 0
    between: bool = False
    anywhere: bool = False
    bundles: bool = False
    assigns: bool = False
    joins: bool = False
    shell: bool = False
    tail: bool = False
    doubt: str = ""
    commands: Mapping[str, _Spec] = {}


class _Table(NamedTuple):
    wrappers: Mapping[str, _Spec]
    scripts: Mapping[str, frozenset[str]]
    code: Mapping[str, Mapping[str, str]]
    doubts: Mapping[str, str]


@cache
def _table() -> _Table:
    source = files("signoff.policy.shell").joinpath("wrappers.toml").read_text("utf-8")
    raw: dict[str, Any] = tomllib.loads(source)
    wrappers = {name: _spec(raw["wrappers"], keys) for name, keys in raw["wrappers"].items()}
    scripts = {name: frozenset(cast("str", options).split()) for name, options in raw["scripts"].items()}
    return _Table(wrappers, scripts, raw["code"], raw["doubts"])


def _spec(raw: Mapping[str, Any], keys: Mapping[str, Any]) -> _Spec:
    """The keys of one wrapper as a spec; `like` names another one, by its words."""
    if "like" in keys:
        first, *rest = cast("str", keys["like"]).split()
        other: Mapping[str, Any] = raw[first]
        for word in rest:
            other = other["commands"][word]
        keys = {**other, **{key: value for key, value in keys.items() if key != "like"}}
    made: dict[str, Any] = {}
    for key, value in keys.items():
        if key == "commands":
            made[key] = {name: _spec(raw, below) for name, below in value.items()}
        else:
            made[key] = frozenset(value.split()) if isinstance(value, str) and key != "doubt" else value
    return _Spec(**made)


def changes_programs(name: str) -> bool:
    """Whether a variable of this name changes which programs run, or what they do."""
    return _CHANGES_PROGRAMS.match(name) is not None


def hand_on(args: Args, stdin: Arg | None = None) -> Handed:
    """What the command of these words runs in turn. `stdin` is the text it is given to read, where that is known."""
    out = Out(stdin)
    if args and (program := args[0].sure):
        name = program.rsplit("/", 1)[-1]
        _dispatch(name, args, out)
    return Handed(tuple(out.inner), tuple(dict.fromkeys(out.opaque)))


def _dispatch(name: str, args: Args, out: Out) -> None:
    table = _table()
    if doubt := table.doubts.get(name):
        out.opaque.append(f"`{name}` {doubt}")
    _side_effects(name, args, out)
    if special := SPECIAL.get(name):
        special(name, args, out)
    elif spec := table.wrappers.get(name):
        _wrapper(name, args, spec, out)
    elif options := table.scripts.get(name):
        option_scripts(name, args, options, out)
    elif language := table.code.get(name) or table.code.get(name.rstrip("0123456789.-")):
        run_code(name, args, language, out)


def _side_effects(name: str, args: Args, out: Out) -> None:
    """What builtins do to the shell, and what is run by the way."""
    if name in _SUBSCRIPT_BUILTINS:
        if any("[" in text and ("$(" in text or "`" in text) for arg in args[1:] if (text := arg.text)):
            out.opaque.append(f"`{name}` may run what stands in a subscript")
    if name in _SETTERS or (name == "printf" and any(arg.word in ("-v", None) for arg in args[1:2])):
        _assigned(args, out)
    if name in _RESERVED:
        out.opaque.append(f"`{name}` stands where a program should")
        out.inner.append(Inner(name, args[1:]))
    if name in ("ssh", "scp", "sftp", "autossh", "sshfs"):
        for arg in args[1:]:
            if match := _SSH_SETTING.match(arg.text or ""):
                out.script(f"{name} -o {match[1]}", Arg(match[2], arg.kind))


class _Scan(NamedTuple):
    at: int
    """Where the first operand is."""
    seen: tuple[tuple[str, Arg], ...]
    """Options in order, with their values."""
    stuck: bool = False
    """A word that is not literal stands where an option may stand."""


def _scan(name: str, args: Args, at: int, spec: _Spec, out: Out) -> _Scan:
    seen: list[tuple[str, Arg]] = []
    while at < len(args):
        text = args[at].sure
        if text is None:
            out.opaque.append(f"`{name}` is given a word that is not literal where its command may start")
            return _Scan(at, tuple(seen), True)
        if text == "--":
            return _Scan(at + 1, tuple(seen))
        if not text.startswith("-") or (text == "-" and "-" not in spec.flags):
            break
        following = args[at + 1] if at + 1 < len(args) else UNKNOWN
        found, takes = _long(text, following, spec) if text.startswith("--") else _short(text, following, spec)
        for option, value in found:
            if option not in spec.flags and option not in spec.values | spec.maybe | spec.script:
                out.opaque.append(f"`{name} {option}` is not an option that is known here")
            seen.append((option, value))
        at += 1 + takes
    return _Scan(at, tuple(seen))


def _long(text: str, following: Arg, spec: _Spec) -> tuple[list[tuple[str, Arg]], int]:
    option, equals, value = text.partition("=")
    known = spec.flags | spec.values | spec.maybe | spec.script
    if option not in known:
        full = [one for one in known if one.startswith(option)]
        option = full[0] if len(full) == 1 else option
    if equals:
        return [(option, Arg(value))], 0
    if option in spec.values or option in spec.script:
        return [(option, following)], 1
    return [(option, UNKNOWN)], 0


def _short(text: str, following: Arg, spec: _Spec) -> tuple[list[tuple[str, Arg]], int]:
    """A word of short options, such as `-nf5`; the value may be attached or follow."""
    if text == "-" or text in spec.flags:
        return [(text, UNKNOWN)], 0
    found: list[tuple[str, Arg]] = []
    for index in range(1, len(text)):
        option, rest = "-" + text[index], text[index + 1 :]
        if option in spec.values or option in spec.script:
            return [*found, (option, Arg(rest) if rest else following)], 0 if rest else 1
        found.append((option, Arg(rest)))
        if option in spec.maybe and not spec.bundles:
            break
    return found, 0


def _wrapper(name: str, args: Args, spec: _Spec, out: Out) -> None:
    if spec.doubt:
        out.opaque.append(f"`{name}` {spec.doubt}")
    if spec.anywhere and option_scripts(name, args, spec.script, out):
        return
    scan = _scan(name, args, 1, spec, out)
    at, seen = scan.at, list(scan.seen)
    if spec.commands:
        below = spec.commands.get(args[at].sure or "") if at < len(args) else None
        if below is not None:
            _wrapper(f"{name} {args[at].sure}", args[at:], below, out)
        return
    for option, value in seen:
        if option in spec.script:
            out.script(f"{name} {option}", value)
    if any(option in spec.stops for option, _ in seen):
        return
    for _ in range(spec.operands):
        at += 1
        if spec.between and not scan.stuck:
            scan = _scan(name, args, at, spec, out)
            at, seen = scan.at, [*seen, *scan.seen]
    if at < len(args) and spec.operands and args[at].sure == "--":
        at += 1
    if spec.assigns:
        at = _assignments(args, at, out)
    _command(name, args[at:], spec, dict(seen), out)


def _assignments(args: Args, at: int, out: Out) -> int:
    while at < len(args) and (match := _ASSIGNMENT.match(args[at].text or "")):
        if changes_programs(match[1]):
            out.opaque.append(f"sets `{match[1]}`")
        at += 1
    return at


def _assigned(args: Args, out: Out) -> None:
    """Variables that a builtin sets by name."""
    for arg in args[1:]:
        variable = re.split(r"[\[=+]", arg.text or "", maxsplit=1)[0]
        if changes_programs(variable):
            out.opaque.append(f"sets `{variable}`")


def _command(name: str, command: Args, spec: _Spec, seen: Mapping[str, Arg], out: Out) -> None:
    if name in ("env", "genv") and (split := seen.get("-S") or seen.get("--split-string")):
        _env_split(split, command, out)
    elif not command:
        if spec.shell:
            out.input(name)
    elif spec.joins and not (name == "watch" and ("-x" in seen or "--exec" in seen)):
        out.script(name, joined(command))
    else:
        if spec.tail:
            command = _with_input(command, seen)
        out.inner.append(Inner(name, command))


def _with_input(command: Args, seen: Mapping[str, Arg]) -> Args:
    """The command that xargs runs: words from its input stand in the place of a token, or at the end."""
    token = next((seen[option] for option in ("-I", "-i", "-J", "--replace") if option in seen), None)
    if token is None:
        return (*command, UNKNOWN)
    return placed(command, token.text or "{}")


def _env_split(split: Arg, rest: Args, out: Out) -> None:
    text = split.sure
    if text is None or any(char in text for char in "\\$#"):
        out.opaque.append("`env -S` takes a text apart that is not plain")
    try:
        words = shlex.split(split.text or "")
    except ValueError:
        words = (split.text or "").split()
    out.inner.append(Inner("env -S", (Arg("env"), *(Arg(word) for word in words), *rest)))
