"""Shell builtins, implemented without a shell: `cd`, `pwd`, `command -v`, `type`, `true`, `false` and `:`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from signoff.policy.step_count import Unclear
from signoff.toolsets.builtin.shell.environment import approved_environment, home_directory

BUILTINS = frozenset({"cd", "pwd", "command", "type", "true", "false", ":"})

_KEYWORDS = frozenset(
    "if then else elif fi case esac for select while until do done in function time { } ! [[ ]] coproc".split()
)
_OWN = frozenset("""
    . : [ alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown echo
    enable eval exec exit export false fc fg getopts hash help history jobs kill let local logout mapfile popd printf
    pushd pwd read readarray readonly return set shift shopt source suspend test times trap true type typeset ulimit
    umask unalias unset wait
""".split())  # fmt: skip
"""The builtins of bash, for `type` and `command -v`."""


class BuiltinResult(NamedTuple):
    """The exit status and the output of a builtin."""

    code: int = 0
    out: str = ""
    err: str = ""


@dataclass(slots=True)
class Directories:
    """The working directory of a line, as it was reached (symlinks kept), and the previous one."""

    now: str
    before: str = ""
    programs: tuple[str, ...] = ()
    """Where programs are looked up before the user's own PATH."""


def run_builtin(argv: Sequence[str], directories: Directories) -> BuiltinResult:
    """Run a builtin; `cd` changes `directories`. Raises `Unclear` for options that are not supported here."""
    match argv[0]:
        case "cd":
            return _cd(argv[1:], directories)
        case "pwd":
            return _pwd(argv[1:], directories)
        case "type":
            return _type(argv[1:], directories.programs)
        case "command":
            return _command(argv[1:], directories.programs)
        case name:
            return BuiltinResult(1 if name == "false" else 0)


def _options(words: Sequence[str], known: str, name: str) -> tuple[str, list[str]]:
    """The letters of the options, in order, and the operands."""
    letters = ""
    for at, word in enumerate(words):
        if word == "--":
            return letters, list(words[at + 1 :])
        if len(word) < 2 or word[0] != "-":
            return letters, list(words[at:])
        if not set(word[1:]) <= set(known):
            raise Unclear(f"`{name} {word}` is not known here")
        letters += word[1:]
    return letters, []


def _cd(words: Sequence[str], directories: Directories) -> BuiltinResult:
    letters, operands = _options(words, "LP", "cd")
    if len(operands) > 1:
        return BuiltinResult(1, err="signoff: cd: too many arguments\n")
    target = operands[0] if operands else home_directory()
    out = ""
    if target == "-":
        if not directories.before:
            return BuiltinResult(1, err="signoff: cd: OLDPWD not set\n")
        target = directories.before
        out = f"{target}\n"
    if not target:
        return BuiltinResult()
    written = os.path.join(directories.now, target)
    led = "/" + os.path.normpath(written).lstrip("/")
    # Like bash: if the path as written, with `..` taken as text, cannot be entered, the one on the disk is tried.
    if letters.endswith("P") or _closed(_first_closed(written)) or _closed(led):
        if why := _closed(written):
            return BuiltinResult(1, err=f"signoff: cd: {target}: {why}\n")
        led = os.path.realpath(written)
    directories.before, directories.now = directories.now, led
    return BuiltinResult(out=out)


def _first_closed(path: str) -> str:
    """The first directory before a `..` that cannot be entered, or `/`. The path is read as text, as a shell does."""
    way: list[str] = []
    for step in path.split("/"):
        if step == "..":
            if _closed(here := f"/{'/'.join(way)}"):
                return here
            way = way[:-1]
        elif step not in ("", "."):
            way.append(step)
    return "/"


def _closed(directory: str) -> str:
    """Why a directory cannot be entered; empty if it can."""
    if not os.path.exists(directory):
        return "No such file or directory"
    if not os.path.isdir(directory):
        return "Not a directory"
    return "" if os.access(directory, os.X_OK) else "Permission denied"


def _pwd(words: Sequence[str], directories: Directories) -> BuiltinResult:
    letters, _ = _options(words, "LP", "pwd")
    return BuiltinResult(out=(os.path.realpath(directories.now) if letters.endswith("P") else directories.now) + "\n")


def _command(words: Sequence[str], programs: tuple[str, ...]) -> BuiltinResult:
    letters, names = _options(words, "vV", "command")
    if not letters and names:
        raise Unclear("`command --` is not known here")
    if letters.endswith("V"):
        said = _type(["--", *names], programs)
        return said._replace(err=said.err.replace("signoff: type:", "signoff: command:"))
    found = [where for name in names if (where := _whole(name, programs))]
    return BuiltinResult(0 if found or not names else 1, out="".join(f"{one}\n" for one in found))


def _whole(name: str, programs: tuple[str, ...]) -> str:
    """What `command -v` prints for a name."""
    return name if _kind(name, programs) in ("keyword", "builtin") else next(iter(_files(name, programs)), "")


def _type(words: Sequence[str], programs: tuple[str, ...]) -> BuiltinResult:
    letters, names = _options(words, "tpPa", "type")
    code, out, err = 0, "", ""
    for name in names:
        lines = _typed(name, letters, programs)
        out += "".join(f"{line}\n" for line in lines)
        if not lines and not ("p" in letters and _kind(name, programs)):
            code = 1
            if not set(letters) & set("tpP"):
                err += f"signoff: type: {name}: not found\n"
    return BuiltinResult(code, out, err)


def _typed(name: str, letters: str, programs: tuple[str, ...]) -> list[str]:
    """What `type` prints for a name, one line for each meaning."""
    kind, files = _kind(name, programs), _files(name, programs)
    if "P" in letters:
        found = [("file", file) for file in files]
    else:
        own = [(kind, name)] if kind in ("keyword", "builtin") else []
        found = own + [("file", file) for file in files]
    if "a" not in letters:
        found = found[:1]
    lines: list[str] = []
    for what, where in found:
        if "t" in letters:
            lines.append(what)
        elif what == "file":
            lines.append(where if set(letters) & set("pP") else f"{name} is {where}")
        elif not set(letters) & set("pP"):
            lines.append(f"{name} is a shell {what}")
    return lines


def _kind(name: str, programs: tuple[str, ...]) -> str:
    if name in _KEYWORDS:
        return "keyword"
    if name in _OWN:
        return "builtin"
    return "file" if _files(name, programs) else ""


def _files(name: str, programs: tuple[str, ...]) -> list[str]:
    """The programs of that name that an approved command would find. The first one is the one it would run."""
    if not name:
        return []
    directories = approved_environment(os.environ, programs=programs)["PATH"].split(":")
    paths = [name] if "/" in name else [os.path.join(directory, name) for directory in directories]
    return [path for path in dict.fromkeys(paths) if os.path.isfile(path) and os.access(path, os.X_OK)]
