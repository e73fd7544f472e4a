"""Programs that run other commands each in a way of its own: shells, find, git, trap, interpreters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from signoff.policy.shell.literal import HOLE, UNKNOWN, Arg, Kind

Args = tuple[Arg, ...]

_SHELLS = frozenset("sh bash zsh dash ash ksh ksh93 mksh lksh pdksh yash rbash rzsh posh".split())
_GIT_VALUES = frozenset(
    "-C -c --git-dir --work-tree --namespace --super-prefix --config-env --exec-path --attr-source".split()
)
_GIT_COMMAND_KEYS = re.compile(
    r"(?i)alias\.|include|.*(pager|editor|sshcommand|fsmonitor|hookspath|external|textconv|command|program|helper|driver"
    r"|cmd|proxy|askpass|filter|clean|smudge|process|tool|vcs|uploadpack|receivepack|insteadof)"
)
_GIT_RUNS = {
    "rebase": "-x --exec", "difftool": "-x --extcmd", "grep": "-O --open-files-in-pager", "clone": "-u --upload-pack",
    "fetch": "--upload-pack", "pull": "--upload-pack", "push": "--receive-pack --exec",
    "ls-remote": "--upload-pack --exec", "archive": "--exec", "send-email": "--sendmail-cmd --to-cmd --cc-cmd",
    "filter-branch": "--msg-filter --tree-filter --index-filter --env-filter --commit-filter --parent-filter "
    "--tag-name-filter --setup",
}  # fmt: skip


class Inner(NamedTuple):
    """A command that another one runs: its words, or a text that a shell reads."""

    via: str
    """What runs it: `sudo`, `bash -c`."""
    args: Args = ()
    script: str | None = None


class Out:
    def __init__(self, stdin: Arg | None) -> None:
        self.stdin = stdin
        self.inner: list[Inner] = []
        self.opaque: list[str] = []

    def check_option(self, name: str, arg: Arg) -> None:
        """A word that may be one of the options that run something."""
        if arg.may_be_option:
            self.opaque.append(f"`{name}` is given a word that is not literal and may be an option")

    def script(self, via: str, text: Arg) -> None:
        """A text that a shell will read."""
        if text.sure is None:
            self.opaque.append(f"`{via}` runs a text that is not literal")
        if text.text is not None:
            self.inner.append(Inner(via, script=text.text))

    def input(self, via: str) -> None:
        """A shell that reads commands from its input."""
        if self.stdin is None or self.stdin.text is None:
            self.opaque.append(f"`{via}` runs what it reads from its input")
        else:
            self.script(via, self.stdin)


def joined(command: Args) -> Arg:
    text = " ".join(HOLE if arg.text is None else arg.text for arg in command)
    return Arg(text, Kind.SURE if all(arg.sure is not None for arg in command) else Kind.PART)


def placed(command: Iterable[Arg], token: str) -> Args:
    return tuple(arg.partly() if token in (arg.text or "") else arg for arg in command)


def option_scripts(name: str, args: Args, options: frozenset[str], out: Out) -> bool:
    """Texts for a shell that stand after these options, wherever they are. Whether there was one."""
    found = False
    for index, arg in enumerate(args[1:], 1):
        text = arg.text or ""
        out.check_option(name, arg)
        if not text.startswith("-") or (text == "--" and name != "script"):
            continue
        option, equals, value = text.partition("=")
        if not text.startswith("--"):
            option = next((one for one in options if len(one) == 2 and one[1] in text[1:]), text)
            value = text[text.find(option[1:]) + 1 :] if option != text and option in options else ""
            equals = value
        elif option not in options and len(option) > 4:  # abbreviated
            option = next((one for one in options if one.startswith(option)), option)
        if option not in options:
            continue
        found = True
        if equals:
            out.script(f"{name} {option}", Arg(value.removeprefix("exec="), arg.kind))
        else:
            out.script(f"{name} {option}", args[index + 1] if index + 1 < len(args) else UNKNOWN)
    return found


def _shell(name: str, args: Args, out: Out) -> None:
    """A POSIX shell: a text after -c, its input, or a file."""
    at, reads_text, reads_input = 1, False, False
    while at < len(args):
        text = args[at].sure
        if text is None or text in ("-", "--") or text[:1] not in ("-", "+") or len(text) < 2:
            at += text in ("-", "--")
            break
        if text in ("--rcfile", "--init-file"):
            out.opaque.append(f"`{name} {text}` runs commands from a file that is not shown")
            at += 1
        elif not text.startswith("--"):
            reads_text, reads_input = reads_text or "c" in text, reads_input or "s" in text
            at += text[-1] in "oO"
        at += 1
    operands = args[at:]
    if reads_text:
        via = f"{name} -c"
        out.script(via, operands[0] if operands else UNKNOWN)
        if operands and "$@" in (operands[0].text or "") and len(operands) > 2:
            out.inner.append(Inner(via, operands[2:]))
    elif reads_input or not operands or operands[0].sure in ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"):
        out.input(name)
    else:
        out.opaque.append(f"`{name}` runs commands from a file that is not shown")


def _find(name: str, args: Args, out: Out) -> None:
    at = 1
    while at < len(args):
        option = args[at].sure
        out.check_option(name, args[at])
        at += 1
        if option not in ("-exec", "-execdir", "-ok", "-okdir"):
            continue
        end = at
        while end < len(args) and args[end].sure != ";" and not (args[end].sure == "+" and args[end - 1].text == "{}"):
            end += 1
        if command := placed(args[at:end], "{}"):
            out.inner.append(Inner(f"{name} {option}", command))
        at = end + 1


def _fd(name: str, args: Args, out: Out) -> None:
    for index, arg in enumerate(args[1:], 1):
        text = arg.sure or ""
        out.check_option(name, arg)
        if text in ("--exec", "--exec-batch") or re.match(r"-[HIusgaiLpF0lq1]*[xX]\Z", text):
            end = next((at for at in range(index + 1, len(args)) if args[at].sure == ";"), len(args))
            command = args[index + 1 : end]
            holes = any("{" in (one.text or "") for one in command)
            full = placed(command, "{") if holes else (*command, UNKNOWN)
            out.inner.append(Inner(f"{name} {text}", full))
            return


def _git(name: str, args: Args, out: Out) -> None:
    at = 1
    while at < len(args) and (text := args[at].sure) is not None and text.startswith("-"):
        option, _, value = text.partition("=")
        if option in ("-c", "--config-env"):
            following = args[at + 1] if at + 1 < len(args) else UNKNOWN
            _git_setting(Arg(value) if value else following, out)
        if option == "--exec-path" and value:
            out.opaque.append("`git --exec-path` changes which programs run")
        at += 2 if text in _GIT_VALUES and text != "--exec-path" else 1
    rest = args[at:]
    command = rest[0].sure if rest else ""
    if rest and command is None:
        out.opaque.append("`git` is given a sub-command that is not literal")
    verb = rest[1].sure if len(rest) > 1 else ""
    if command == "bisect" and verb == "run":
        out.inner.append(Inner("git bisect run", rest[2:]))
    elif command == "submodule" and "foreach" in [arg.sure for arg in rest]:
        start = next(index for index, arg in enumerate(rest) if arg.sure == "foreach") + 1
        words = tuple(arg for index, arg in enumerate(rest[start:]) if index or arg.sure not in ("--recursive", "-q"))
        out.script("git submodule foreach", joined(words))
    elif command == "config" and any(_GIT_COMMAND_KEYS.match(arg.text or "") for arg in rest[1:]):
        out.opaque.append("`git config` may set a program to run")
    elif options := _GIT_RUNS.get(command or ""):
        option_scripts(f"{name} {command}", rest, frozenset(options.split()), out)


def _git_setting(setting: Arg, out: Out) -> None:
    key, _, value = (setting.text or "").partition("=")
    if setting.sure is None or _GIT_COMMAND_KEYS.match(key):
        out.opaque.append(f"`git -c {key}` may run a program")
    if key.lower().startswith("alias."):
        via = "git -c alias"
        text = value[1:] if value.startswith("!") else f"git {value}"
        out.inner.append(Inner(via, script=text))
    elif value and _GIT_COMMAND_KEYS.match(key):
        out.inner.append(Inner(f"git -c {key}", script=value.removeprefix("!")))


def _trap(name: str, args: Args, out: Out) -> None:
    operands = args[1:]
    if operands and (text := operands[0].text) and text.startswith("-") and text != "-":
        operands = operands[1:] if text == "--" else ()
    if len(operands) > 1 and operands[0].sure not in ("-", ""):
        out.script(name, operands[0])


def run_code(name: str, args: Args, language: Mapping[str, str], out: Out) -> None:
    """An interpreter of another language: code in its words or its input is not understood; a file is a program."""
    codes, values = language["code"].split(), language["values"].split()
    letters = {code[1] for code in codes if len(code) == 2}
    at = 1
    while at < len(args):
        text = args[at].sure
        if text is not None and text == language.get("stop"):
            return
        if text is None or text in codes or text.partition("=")[0] in codes or text in ("-", "/dev/stdin"):
            break
        if not text.startswith("-"):
            return
        if not text.startswith("--") and letters & set(text[1:]):
            break
        at += 2 if text in values else 1
    out.opaque.append(f"`{name}` runs code of another language")


SPECIAL: Mapping[str, Callable[[str, Args, Out], None]] = {
    **dict.fromkeys(_SHELLS, _shell),
    "find": _find, "gfind": _find, "fd": _fd, "fdfind": _fd, "git": _git, "trap": _trap,
}  # fmt: skip
