"""The lists of `further_words.toml`: the words of a program that are fine, and what each has to look like."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from posixpath import basename, normpath
from typing import Any, NamedTuple, cast
from urllib.parse import unquote

from signoff.policy.places import runs_later
from signoff.policy.shell.table import Program, program
from signoff.policy.table_files import table_text

PLAIN = re.compile(r"[\w./:][\w./:+%^~#,@*?-]*|\+\d+|-?", re.ASCII)
"""A name, a path or an address: nothing that a program reads as a setting, a list of options or a command."""
_ADDRESS = re.compile(r"https?://[^\s'\"`\\|;<>{}]+", re.ASCII)
_SETTING = re.compile(
    r"(?:V|Q|CI|CONFIG|DEBUG|RELEASE|VERBOSE|QUIET|SILENT|TRACE|COLOR|NO_?COLOR|WERROR|STRICT|COVERAGE|TESTS?|FAST|FULL"
    r"|STATIC|SHARED|LTO|ASAN|UBSAN|TSAN|JOBS|NPROC|THREADS|FORCE|DRY_?RUN|UPDATE|OPT"
    r"|(?:WITH|WITHOUT|USE|ENABLE|DISABLE|NO|SKIP|BUILD)_\w+)=(?:\d+|yes|no|on|off|true|false|y|n)?",
    re.ASCII,
)
"""A variable that is usually a switch, with a value that names no program: `V=1`. Of others a build, or make itself
(`MAKEFILES=1`, `PATH=1`), may take the value for a file."""
_SPELT_OUT = re.compile(r"(?:\./)?(?:(?!\.\.?/)[^/]+/)*[^/]+")
"""A relative path in its plainest form. Of a directory only the program knows which file it reads there, and some take
`x.json/` for the file."""
PATHS = {
    **dict.fromkeys(("below", "output", "settings"), re.compile(r"(?s).*")),
    "files": re.compile(r"(?s).*[./*].*|src|lib|apps?|docs?|tests?|specs?|__tests__|packages", re.ASCII),
}
"""Kinds of paths in the directory, and what they look like."""
KINDS = frozenset({*PATHS, "data", "form", "cookie"})


class Further(NamedTuple):
    """The words of a program, or of a sub-command, that are fine."""

    flags: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()
    """Options with a value, which may be anything but a place outside the directory."""
    texts: frozenset[str] = frozenset()
    """Options with a value that no program takes for a place: a message, an expression."""
    attached: frozenset[str] = frozenset()
    """Options with a value that may be left out, and otherwise follows a `=` or the letter."""
    fits: Mapping[str, str] = {}
    """Options with a value that must match a regular expression, or be of a kind that `operand_trouble` names."""
    commands: frozenset[str] = frozenset()
    operands: str = "plain"
    never: frozenset[str] = frozenset()
    """Operands that are not covered: sub-commands of a program that otherwise takes files."""
    passes: frozenset[str] = frozenset()
    """Options that are fine behind `--`, where another program reads them."""
    script: bool = False
    """Whether the first operand is a program of its own, which is given all words behind it."""
    expands: bool = False
    """Whether a word `@file` is replaced by the words in that file, also where it is the value of an option."""
    single: bool = False
    """Whether `-word` is one option, not a bundle of letters."""
    apart: bool = False
    """Whether a value is never attached to the letter of its option."""


def operand_trouble(kind: str, word: str) -> str:
    """Return why a word is not fine as what it is, or ""."""
    if kind == "text":
        return ""
    if kind in PATHS and not PATHS[kind].fullmatch(word):
        return "it may be a sub-command"
    if kind == "output" and runs_later(word):
        return "programs run or follow what is written there"
    if kind == "settings" and word != "." and not (_SPELT_OUT.fullmatch(word) and runs_later(basename(word))):
        return "it may name a file with settings that anybody has written"
    if kind in KINDS:
        outside = any(map(_is_outside, files_in(kind, word)))
        return "it is outside the directory, or no path" if outside else ""
    if kind == "saved":
        if runs_later(_saved_as(word)):
            return "programs run or follow what is written there"
        kind = "address"
    if kind == "address" and _ADDRESS.fullmatch(word):
        return ""
    if kind == "setting" and _SETTING.fullmatch(word):
        return ""
    if kind in ("plain", "address", "setting"):
        return "" if PLAIN.fullmatch(word) else "it is no plain name or path"
    return "" if re.fullmatch(kind, word, re.ASCII) else "not a word that is covered"


def files_in(kind: str, word: str) -> Sequence[str]:
    """Return what in a value of a kind is a file: `@file` in data, behind `@` and `<` in forms, or all of it."""
    if kind in PATHS or (kind == "cookie" and "=" not in word):
        return (word, *re.split("[{},]", word))
    if kind == "form" and ("@" in word or "<" in word):
        return [part.strip("\"' ") for part in re.split("[@<,;=]", word)]
    return (word[1:],) if kind == "data" and word.startswith("@") else ()


def _saved_as(address: str) -> str:
    """Return the name of the file that is made of what an address leads to."""
    return unquote(re.split("[?#]", address)[0]).rpartition("/")[2]


def _is_outside(path: str) -> bool:
    path = normpath(path.partition("::")[0]) if path else ""
    return path != "/dev/null" and (path == ".." or path.startswith(("/", "~", "@", "+", "../")))


def listed(argv: Sequence[str]) -> tuple[Further | None, Program | None, int]:
    """Return what is known of the command, down to its sub-command, and where its words start.

    The list of its further words if there is one, and what the table says of it.
    """
    lists, name, at = entries(), argv[0].rpartition("/")[2], 1
    entry, known = lists.get(name), program(argv[0].rpartition("/")[2])
    while at < len(argv):
        word = argv[at]
        if entry is not None and word.startswith("-") and len(word) > 1 and word in entry.flags and entry.commands:
            at += 1
            continue
        below = lists.get(f"{name} {word}")
        deeper = known.commands.get(word) if known is not None else None
        if below is None and (entry is None or word not in entry.commands) and (entry is not None or deeper is None):
            break
        known, name, at = deeper, f"{name} {word}", at + 1
        entry = below if below is not None or (known is not None and is_reader(known)) else Further()
    return entry, known, at


@cache
def _data() -> Mapping[str, Any]:
    return tomllib.loads(table_text("shell/further_words.toml"))


@cache
def contained() -> frozenset[str]:
    """Programs that run nothing else, whatever their words."""
    return frozenset(cast("str", _data()["contained"]).split())


@cache
def entries() -> Mapping[str, Further]:
    raw = cast("Mapping[str, Mapping[str, Any]]", _data()["programs"])
    return {name: _further(raw, keys) for names, keys in raw.items() for name in names.split(", ")}


def _further(raw: Mapping[str, Mapping[str, Any]], keys: Mapping[str, Any]) -> Further:
    made: dict[str, Any] = {"fits": dict(keys.get("fits", {}))}
    for key, kind in (("places", "below"), ("outputs", "output")):
        made["fits"] |= dict.fromkeys(keys.get(key, "").split(), kind)
    for key in keys.keys() - {"fits", "places", "outputs"}:
        split = isinstance(keys[key], str) and key != "operands"
        made[key] = frozenset(cast("str", keys[key]).split()) if split else keys[key]
    return Further(**made)


def is_reader(known: Program) -> bool:
    """Whether the table knows its words: it may only read, or says of every option what it does."""
    if known.trouble:
        return False
    return not known.needs or not known.needs_trouble.startswith(("runs", "changes"))
