"""Wrappers, programs that run other commands (sudo, env, xargs …): find the inner command in the words."""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple, cast

from signoff.policy.shell.literal import HOLE, UNKNOWN, Arg, Certainty
from signoff.policy.shell.runners import SPECIAL, Args, Inner, Out, joined, old_tar, option_scripts, placed, run_code
from signoff.policy.shell.shell_variables import changes_programs, is_harmless
from signoff.policy.shell.table import is_own_file
from signoff.policy.table_files import table_text

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\[.*\])?\+?=", re.DOTALL)
_SSH_SETTING = re.compile(r"(?i)(?:-\w*?o)?\s*(\w+Command)\s*[=\s]\s*(.+)", re.DOTALL)
_RESERVED = frozenset("{ } ! if then elif else fi do done while until for select case esac function [[ ]] ((".split())
_DECLARES = frozenset("export readonly unset local declare typeset integer float".split())
_SETTERS = {"read": "dinNptu", "mapfile": "dnOsuCc", "readarray": "dnOsuCc", "getopts": ""}
_SUBSCRIPT_BUILTINS = frozenset(("test", "[", "printf", "let", "wait", *_DECLARES, *_SETTERS))
_SUBSCRIPT = re.compile(r"[A-Za-z_]\w*+\[(?!(?:\d++|[@*])\])")
_VARIABLE = re.compile(r"[A-Za-z_]\w*+(?:\[\d++\])?\Z")
_NUMBERS = re.compile(
    r"(?:[\s+*/%<>=!&|^~?:,;()\[\]-]|0[xX][0-9a-fA-F]++(?!\w)|\d++(?![\w#])|\$[#?$]|\$\{#\w++\}|\$(?=\(\(|\[))*\Z"
)
_SETTING = re.compile(r"[0-9][0-9.]{0,9}[smhd]?|[A-Z]{1,8}[0-9]?|[LN]|-[0-9]{1,2}", re.ASCII)
"""How long, how urgent, which signal, how much is kept back."""
_TEXTS = ("doubt", "optional", "starts")
_LOADER = re.compile(r"ld[\w-]*+\.so[\d.]*+\Z|ld-\d[\d.]*+\.so\Z")


class Handed(NamedTuple):
    """The commands that a command runs, and what is not understood of it."""

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
    direct: frozenset[str] = frozenset()
    program: frozenset[str] = frozenset()
    after: frozenset[str] = frozenset()
    risks: frozenset[str] = frozenset()
    two: frozenset[str] = frozenset()
    optional: str = ""
    starts: str = ""
    abbreviates: bool = False
    dashes: bool = False
    doubt: str = ""
    commands: Mapping[str, _Spec] = {}
    unasked: frozenset[str] | None = None


class _Table(NamedTuple):
    wrappers: Mapping[str, _Spec]
    scripts: Mapping[str, frozenset[str]]
    code: Mapping[str, Mapping[str, str]]
    words: Mapping[str, Mapping[str, str]]
    doubts: Mapping[str, str]


@cache
def _table() -> _Table:
    source = table_text("shell/wrappers.toml")
    raw: dict[str, Any] = tomllib.loads(source)
    wrappers = {name: _spec(raw["wrappers"], keys) for name, keys in raw["wrappers"].items()}
    for pair in cast("str", raw["alike"]).split():
        other, _, name = pair.partition("=")
        wrappers[other] = wrappers[name]
    wrappers.update(dict.fromkeys(cast("str", raw["plain"]).split(), _Spec()))
    scripts = {name: frozenset(cast("str", options).split()) for name, options in raw["scripts"].items()}
    doubts = {name: reason for reason, names in raw["doubts"].items() for name in cast("str", names).split()}
    return _Table(wrappers, scripts, raw["code"], raw["words"], doubts)


def _spec(raw: Mapping[str, Any], keys: Mapping[str, Any]) -> _Spec:
    """Return the keys of one wrapper as a spec. `like` names another wrapper to copy from, by its words."""
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
            made[key] = frozenset(value.split()) if isinstance(value, str) and key not in _TEXTS else value
    return _Spec(**made)


def is_number(text: str) -> bool:
    """Whether arithmetic on this text uses numbers only: the value of a variable is evaluated and may run commands."""
    return _NUMBERS.match(text) is not None


def is_modelled(program: str) -> bool:
    """Whether the commands that a program runs can be found in its words.

    Of an interpreter they cannot: what a program in a file does with its words is not known.
    """
    table, name = _table(), program.rpartition("/")[2]
    if _is_unlike(program, name):
        return False
    tables = (table.wrappers, table.scripts, table.words, table.doubts, SPECIAL)
    return any(name in one for one in tables) or _LOADER.match(name) is not None


def has_settings(name: str) -> bool:
    """Whether the program of this name takes `NAME=value`, and may run the value: `make CC=x`."""
    return name in _table().words


def changes_nothing(argv: Sequence[str]) -> int:
    """Return how many words stand before the command that a wrapper runs, if they change nothing about what it does.

    0 if it is no wrapper, has another option, or runs nothing.
    """
    spec = _table().wrappers.get(argv[0].rpartition("/")[2]) if argv else None
    if spec is None or spec.unasked is None:
        return 0
    at = _harmless_options(argv, spec, spec.unasked)
    for _ in range(spec.operands):
        if not at or at >= len(argv) or not _SETTING.fullmatch(argv[at]):
            return 0
        at += 1
    while at and spec.assigns and at < len(argv) and "=" in argv[at]:
        name, _, value = argv[at].partition("=")
        if not is_harmless(name, value):
            return 0
        at += 1
    return at if at < len(argv) else 0


def _harmless_options(argv: Sequence[str], spec: _Spec, harmless: frozenset[str]) -> int:
    """Return where the options of a wrapper end; 0 if one of them is not harmless."""
    at = 1
    while at < len(argv) and argv[at].startswith("-"):
        name, equals, value = argv[at].partition("=")
        if not name.startswith("--") and name[:2] in spec.values and len(argv[at]) > 2:
            name, equals, value = argv[at][:2], "=", argv[at][2:]
        at += 1
        if name in spec.values and not equals:
            equals, value, at = "=", argv[at] if at < len(argv) else "", at + 1
        if name not in harmless or bool(equals) != (name in spec.values) or (equals and not _SETTING.fullmatch(value)):
            return 0
    return at


def hand_on(args: Args, stdin: Arg | None = None) -> Handed:
    """Return the commands that this command runs in turn. `stdin` is its input text, if known."""
    out = Out(stdin)
    if args and (program := args[0].sure):
        name = program.rsplit("/", 1)[-1]
        _dispatch(name, args, out)
        if _is_unlike(program, name):
            out.opaque.clear()  # the commands in its words stay: they can only tighten
    return Handed(tuple(out.inner), tuple(dict.fromkeys(out.opaque)))


def _is_unlike(program: str, name: str) -> bool:
    """Whether a program has the name of one that is known here, but is hardly that program. Shells and interpreters are
    also put beside the files of a project.
    """
    return is_own_file(program) and not (name in SPECIAL or name.rstrip("0123456789.-") in _table().code)


def _dispatch(name: str, args: Args, out: Out) -> None:
    table = _table()
    if doubt := table.doubts.get(name):
        out.opaque.append(f"`{name}` {doubt}")
    if rule := table.words.get(name):
        _look(name, args, rule, out)
    _side_effects(name, args, out)
    if special := SPECIAL.get(name):
        special(name, args, out)
    elif spec := table.wrappers.get("ld.so" if _LOADER.match(name) else name):
        _wrapper(name, args, spec, out)
    elif options := table.scripts.get(name):
        option_scripts(name, args, options, out)
    elif name.startswith("git-"):
        out.inner.append(Inner(name, (Arg("git"), Arg(name.removeprefix("git-")), *args[1:])))
    elif language := table.code.get(name) or table.code.get(name.rstrip("0123456789.-")):
        run_code(name, args, language, out)


def _look(name: str, args: Args, rule: Mapping[str, str], out: Out) -> None:
    """Find commands inside words, in the program's own syntax."""
    for arg in args[1:]:
        text = arg.text or HOLE
        if "doubt" in rule and (text.startswith(HOLE) or re.search(rule["doubt"], text)):
            out.opaque.append(f"`{name}` may run a command that one of its arguments holds")
        for match in re.finditer(rule["runs"], text) if "runs" in rule else ():
            out.script(name, Arg(match[1], arg.kind))


def _side_effects(name: str, args: Args, out: Out) -> None:
    """Handle what builtins do to the shell, and commands that run as a side effect."""
    if name in _SUBSCRIPT_BUILTINS:
        _subscripts(name, args, out)
    if name in _DECLARES:
        if name not in ("export", "readonly", "unset", "local") or any((a.text or "-")[:1] == "-" for a in args[1:]):
            out.opaque.append(f"`{name}` may change which programs names refer to")
        _assigned(args[1:], out)
    elif name in _SETTERS:
        _assigned(_set_by(args, _SETTERS[name]), out)
    elif name == "printf" and len(args) > 2:
        _printf(args, out)
    if name in _RESERVED:
        out.opaque.append(f"`{name}` is in the place of a program")
        out.inner.append(Inner(name, args[1:]))
    if name in ("ssh", "scp", "sftp", "autossh", "sshfs"):
        for arg in args[1:]:
            if match := _SSH_SETTING.match(arg.text or ""):
                out.script(f"{name} -o {match[1]}", Arg(match[2], arg.kind))
    if name in ("tar", "gtar", "bsdtar"):
        old_tar(name, args, out)


def _printf(args: Args, out: Out) -> None:
    first = args[1].text or ""
    if args[1].may_be_option:
        out.opaque.append("`printf` may set a variable, through a word that is only known when it runs")
    if first.startswith("-v"):
        _assigned((Arg(first[2:]),) if first[2:] else args[2:3], out)


def _subscripts(name: str, args: Args, out: Out) -> None:
    """Doubt array subscripts: they are evaluated, and so is the value of a variable that they name."""
    texts = [arg.text or "" for arg in args[1:]]
    if any(_SUBSCRIPT.match(text) or ("[" in text and ("$(" in text or "`" in text)) for text in texts):
        out.opaque.append(f"`{name}` may run a command in a subscript")
    if name == "let" and not all(is_number(text) and text for text in texts):
        out.opaque.append("`let` evaluates an expression that can run commands")
    if name in ("test", "["):
        for before, after in pairwise(args[1:]):
            unknown = before.kind is Certainty.PART and after.kind is Certainty.PART
            if unknown or (before.sure in ("-v", "-R") and not _VARIABLE.match(after.sure or "")):
                out.opaque.append(f"`{name}` may run a command in a subscript")


def _set_by(args: Args, values: str) -> Args:
    """Return the words of a builtin that may name a variable: without its options and their values."""
    found: list[Arg] = []
    skip = False
    for arg in args[1:]:
        text = arg.text or ""
        if not skip and not (text.startswith("-") and arg.sure):
            found.append(arg)
        skip = not skip and text.startswith("-") and text[-1] in values
    return tuple(found)


class _Scan(NamedTuple):
    at: int
    """Position of the first operand."""
    seen: tuple[tuple[str, Arg], ...]
    """Options in order, with their values."""
    stuck: bool = False
    """Whether a word that is not literal is where an option may be."""


def _scan(name: str, args: Args, at: int, spec: _Spec, out: Out) -> _Scan:
    seen: list[tuple[str, Arg]] = []
    while at < len(args):
        text = args[at].sure
        if text is None:
            out.opaque.append(f"`{name}` is given a word that is only known when it runs, in the place of its command")
            return _Scan(at, tuple(seen), True)
        if text == "--":
            return _Scan(at + 1, tuple(seen))
        if not text.startswith("-") or (text == "-" and "-" not in spec.flags):
            break
        following = args[at + 1] if at + 1 < len(args) else UNKNOWN
        if text in spec.after or text in spec.two:
            seen.append((text, following))
            at += 3 if text in spec.two else 1
            if text in spec.after:
                return _Scan(at, tuple(seen))
            continue
        found, takes = _long(text, following, spec) if text.startswith("--") else _short(text, following, spec)
        for option, value in found:
            if option not in spec.flags and option not in spec.values | spec.maybe | spec.script:
                out.opaque.append(f"`{name} {option}` is not an option signoff knows")
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
    """Read a word of short options such as `-nf5`; the value may be attached or follow."""
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
    _doubt_wrapper(name, args, spec, out)
    if spec.direct:
        scan = _scan(name, args, 1, spec, out)
        if any(option in spec.direct for option, _ in scan.seen):
            out.inner.append(Inner(name, args[scan.at :]))
            return
    if spec.anywhere and option_scripts(name, args, spec.script, out):
        return
    scan = _scan(name, args, 1, spec, out)
    for option, value in scan.seen:
        if option in spec.script:
            out.script(f"{name} {option}", value)
    if spec.commands:
        below = _below(args[scan.at].sure or "", spec) if scan.at < len(args) else None
        if below is not None:
            _wrapper(f"{name} {args[scan.at].sure}", args[scan.at :], below, out)
        return
    given = dict(scan.seen)
    if given.keys() & spec.stops or (spec.after and not given.keys() & spec.after):
        return
    if programs := [value for option, value in scan.seen if option in spec.program]:
        out.inner.append(Inner(name, (programs[-1], *args[scan.at :])))
        return
    if spec.dashes and args[scan.at - 1].sure == "--" and args[scan.at :]:
        out.inner.append(Inner(name, args[scan.at :]))
    at, seen = _skip_operands(name, args, scan, spec, out)
    if spec.assigns:
        at = _assignments(args, at, out)
    _command(name, args[at:], spec, seen, out)


def _doubt_wrapper(name: str, args: Args, spec: _Spec, out: Out) -> None:
    if spec.doubt:
        out.opaque.append(f"`{name}` {spec.doubt}")
    for arg in args[1:] if spec.risks else ():
        option = (arg.text or "").partition("=")[0]
        option = option if option.startswith("--") else option[:2]
        if option in spec.risks:
            out.opaque.append(f"`{name} {option}` changes which command runs")


def _skip_operands(name: str, args: Args, scan: _Scan, spec: _Spec, out: Out) -> tuple[int, dict[str, Arg]]:
    """Return where the command starts after the operands before it, and all options up to there."""
    at, seen = scan.at, dict(scan.seen)
    for _ in range(spec.operands):
        if spec.optional and not (at < len(args) and re.fullmatch(spec.optional, args[at].sure or "")):
            break
        at += 1
        if spec.between and not scan.stuck:
            scan = _scan(name, args, at, spec, out)
            at = scan.at
            seen.update(scan.seen)
    if at < len(args) and spec.operands and args[at].sure == "--":
        at += 1
    return at, seen


def _below(word: str, spec: _Spec) -> _Spec | None:
    """Return the spec of the sub-command; some programs accept abbreviations. None if there is none."""
    if spec.abbreviates and word and word not in spec.commands:
        word = next((name for name in spec.commands if name.startswith(word)), word)
    return spec.commands.get(word)


def _assignments(args: Args, at: int, out: Out) -> int:
    """Skip what `env` and `sudo` take for assignments: any word with a `=`, also `BASH_FUNC_ls%%=…`."""
    while at < len(args) and "=" in (text := args[at].text or ""):
        name = text.partition("=")[0]
        harmless = is_harmless(*text.split("=", 1))
        if not harmless and (changes_programs(name) or not (name.isidentifier() and name.isascii())):
            out.opaque.append(f"sets `{name}`")
        at += 1
    return at


def _assigned(args: Args, out: Out) -> None:
    """Handle variables that a builtin sets by name."""
    for arg in args:
        variable = re.split(r"[\[=+]", arg.text or "", maxsplit=1)[0]
        if changes_programs(variable):
            out.opaque.append(f"sets `{variable}`")
        elif arg.kind is not Certainty.SURE and not _ASSIGNMENT.match(arg.text or ""):
            out.opaque.append("sets a variable whose name is an expansion")


def _command(name: str, command: Args, spec: _Spec, seen: Mapping[str, Arg], out: Out) -> None:
    if name in ("env", "genv") and (split := seen.get("-S") or seen.get("--split-string")):
        _env_split(split, command, out)
    elif not command:
        if spec.shell:
            out.input(name)
    elif spec.joins:
        out.script(name, joined(command))
    else:
        if spec.tail:
            command = _with_input(command, seen)
        out.inner.append(Inner(name, (Arg(spec.starts), *command) if spec.starts else command))


def _with_input(command: Args, seen: Mapping[str, Arg]) -> Args:
    """Return the command that xargs runs: words from its input replace a token, or are appended."""
    token = next((seen[option] for option in ("-I", "-i", "-J", "--replace") if option in seen), None)
    if token is None:
        return (*command, UNKNOWN)
    return placed(command, token.text or "{}")


def _env_split(split: Arg, rest: Args, out: Out) -> None:
    text = split.sure
    if text is None or any(char in text for char in "\\$#"):
        out.opaque.append("`env -S` splits a text that is not plain")
    try:
        words = shlex.split(split.text or "")
    except ValueError:
        words = (split.text or "").split()
    out.inner.append(Inner("env -S", (Arg("env"), *(Arg(word) for word in words), *rest)))
