"""Programs that run other commands, each in its own way: shells, find, git, trap, interpreters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from signoff.policy.phrases import cut
from signoff.policy.shell.languages.sed import sed_trouble
from signoff.policy.shell.literal import HOLE, UNKNOWN, Arg, Certainty
from signoff.policy.shell.table import program

Args = tuple[Arg, ...]

_SHELLS = frozenset("sh bash zsh dash ash ksh ksh93 mksh lksh pdksh yash rbash rzsh posh".split())
_INPUTS = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
_GIT_VALUES = frozenset(
    "-C -c --git-dir --work-tree --namespace --super-prefix --config-env --exec-path --attr-source".split()
)
_GIT_COMMAND_KEYS = re.compile(
    r"(?i)alias\.|include|protocol|.*(pager|editor|sshcommand|fsmonitor|hook|template|external|textconv|command|program|helper|driver"
    r"|cmd|proxy|askpass|filter|clean|smudge|process|tool|vcs|uploadpack|receivepack|insteadof)"
)
_GIT_PUSHES = re.compile(r"(?i)remote\..*\.(?:push|mirror)\Z")
"""Settings that decide what `git push` overwrites or deletes."""
_GIT_RUNS = {
    "rebase": "-x --exec", "difftool": "-x --extcmd", "grep": "-O --open-files-in-pager", "clone": "-u --upload-pack",
    "fetch": "--upload-pack", "pull": "--upload-pack", "push": "--receive-pack --exec",
    "fetch-pack": "--upload-pack --exec", "send-pack": "--receive-pack --exec", "daemon": "--access-hook",
    "instaweb": "-d --httpd -b --browser", "web--browse": "-b --browser -t --tool",
    "ls-remote": "--upload-pack --exec", "archive": "--exec",
    "send-email": "--sendmail-cmd --to-cmd --cc-cmd --header-cmd --smtp-server",
    "filter-branch": "--msg-filter --tree-filter --index-filter --env-filter --commit-filter --parent-filter "
    "--tag-name-filter --setup --subdirectory-filter",
}  # fmt: skip
_GIT_INNER = frozenset(
    """
    fmt-merge-msg fsck-objects get-tar-commit-id http-fetch http-push merge-octopus merge-one-file merge-ours
    merge-recursive merge-recursive-ours merge-recursive-theirs merge-resolve merge-subtree pack-redundant pickaxe
    quiltimport remote-ext remote-fd remote-ftp remote-ftps remote-http remote-https show-index
    """.split()
)
"""Commands that only git itself uses, or nobody."""
_GIT_HELPER = re.compile(r"(?:\A|=)(?:ext|fd)::(.*)", re.DOTALL)
_GIT_DOUBTS = {
    "filter-repo": "runs code of another language", "hook": "runs a hook", "shell": "runs commands",
    "remote-ext": "runs a command",
    "for-each-repo": "runs commands in several repositories", "difftool": "runs a tool that the configuration names",
    "mergetool": "runs a tool that the configuration names",
}  # fmt: skip
_FD_EXEC = re.compile(r"(--exec(?:-batch)?(?==|\Z)|-[HIusgaiLpF0lq1]*[xX])=?(.*)\Z", re.DOTALL)
_TAR_VALUES = "fbICFTXVgKLNH"
_SED_COMMAND = re.compile(r"(?m)(?:^|[;{])[^\n;{a-zA-Z]*e[ \t]*+(\S.*)")


class Inner(NamedTuple):
    """A command that another one runs: its words, or a script for a shell."""

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
        """Doubt a word that may be one of the options that run something."""
        if arg.may_be_option:
            self.opaque.append(f"`{name}` is given a word that is only known when it runs and may be an option")

    def script(self, via: str, text: Arg) -> None:
        """Add a script that a shell will run."""
        if text.sure is None:
            self.opaque.append(f"`{via}` runs a text that is only known when it runs")
        if text.text is not None:
            self.inner.append(Inner(via, script=text.text))

    def input(self, via: str) -> None:
        """Add what a shell reads from standard input."""
        if self.stdin is None or self.stdin.text is None:
            self.opaque.append(f"`{via}` runs what it reads from standard input")
        else:
            self.script(via, self.stdin)


def joined(command: Args) -> Arg:
    text = " ".join(HOLE if arg.text is None else arg.text for arg in command)
    return Arg(text, Certainty.SURE if all(arg.sure is not None for arg in command) else Certainty.PART)


def placed(command: Iterable[Arg], token: str) -> Args:
    return tuple(arg.partly() if token in (arg.text or "") else arg for arg in command)


def option_scripts(name: str, args: Args, options: frozenset[str], out: Out) -> bool:
    """Add scripts that follow these options, wherever they are. Return whether there was one."""
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
        elif option not in options and len(option) > 2:  # abbreviated
            option = next((one for one in options if one.startswith(option)), option)
        if option not in options:
            continue
        found = True
        text = Arg(value, arg.kind) if equals else args[index + 1] if index + 1 < len(args) else UNKNOWN
        out.script(f"{name} {option}", text._replace(text=text.text and text.text.removeprefix("exec=")))
    return found


def _shell(name: str, args: Args, out: Out) -> None:
    """A POSIX shell: a script after -c, its input, or a file."""
    at, reads_text, reads_input = 1, False, False
    while at < len(args):
        text = args[at].sure
        if text is None or text in ("-", "--") or text[:1] not in ("-", "+") or len(text) < 2:
            at += text in ("-", "--")
            break
        if text in ("--rcfile", "--init-file"):
            out.opaque.append(f"`{name} {text}` runs commands from a file that signoff does not read")
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
        out.opaque.append(f"`{name}` runs commands from a file that signoff does not read")


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
        if match := _FD_EXEC.match(text):
            end = next((at for at in range(index + 1, len(args)) if args[at].sure == ";"), len(args))
            command = (*([Arg(match[2])] if match[2] else []), *args[index + 1 : end])
            holes = any("{" in (one.text or "") for one in command)
            full = placed(command, "{") if holes else (*command, UNKNOWN)
            out.inner.append(Inner(f"{name} {match[1]}", full))
            return


def old_tar(name: str, args: Args, out: Out) -> None:
    """Letters without a dash take their values from the words that follow, in order."""
    letters = (args[1].text or "") if len(args) > 1 else ""
    if not letters.startswith("-"):
        for letter, value in zip((one for one in letters if one in _TAR_VALUES), args[2:], strict=False):
            if letter in "IF":
                out.script(f"{name} {letter}", value)


def _sed(name: str, args: Args, out: Out) -> None:
    """A sed script may run commands; a script in a file, or one that is not literal, is not visible."""
    scripts: list[Arg] = []
    operands: list[Arg] = []
    at = 1
    while at < len(args):
        out.check_option(name, args[at])
        text = args[at].text or ""
        option = text.partition("=")[0]
        letter = re.match(r"-[nErsuz]*([efl])", text)
        at += 1
        if text.startswith("--file") or (letter and letter[1] == "f"):
            out.opaque.append(f"`{name}` runs a script from a file that signoff does not read")
        if len(option) > 3 and "--expression".startswith(option) and "=" in text:
            scripts.append(Arg(text.partition("=")[2], args[at - 1].kind))
        elif letter and text[letter.end() :]:
            scripts.append(Arg(text[letter.end() :], args[at - 1].kind))
        elif letter or (len(option) > 3 and "--expression".startswith(option)):
            scripts.extend(args[at : at + 1])
            at += 1
        elif not text.startswith("-") or text == "-":
            operands.append(args[at - 1])
    for script in scripts or operands[:1]:
        trouble = sed_trouble(script.text or "", separate=bool(scripts))
        if script.kind is Certainty.PART:
            out.opaque.append(f"`{name}` runs a script that is only known when it runs")
        elif trouble is not None:  # only the first problem; there may be more
            out.opaque.append(f"`{name}` runs a script that may run commands: `{cut(trouble.word, 40)}`")
        for match in _SED_COMMAND.finditer(script.text or ""):
            out.inner.append(Inner(f"{name} e", script=match[1]))


def is_own_command(command: str) -> bool:
    """Whether it is a built-in git command; any other is an alias or a program in the search path."""
    known = program("git")
    return known is not None and (command in known.commands or command in _GIT_INNER)


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
        out.opaque.append("`git` is given a sub-command that is only known when it runs")
    elif command and not is_own_command(command):
        out.opaque.append(f"`git {command}` is not a command of git itself, but an alias or a program of that name")
    verb = rest[1].sure if len(rest) > 1 else ""
    _git_words(command or "", rest, out)
    if command == "merge-index":
        out.inner.append(Inner("git merge-index", tuple(arg for arg in rest[1:] if (arg.sure or "x")[0] != "-")))
    elif command == "bisect" and verb == "run":
        out.inner.append(Inner("git bisect run", rest[2:]))
    elif command == "submodule" and "foreach" in [arg.sure for arg in rest]:
        start = next(index for index, arg in enumerate(rest) if arg.sure == "foreach") + 1
        words = tuple(arg for index, arg in enumerate(rest[start:]) if index or arg.sure not in ("--recursive", "-q"))
        out.script("git submodule foreach", joined(words))
    elif command == "config" and any(is_command_key(arg.text or "") for arg in rest[1:]):
        out.opaque.append("`git config` may set a program to run")
    elif command == "config" and any(_GIT_PUSHES.match(arg.text or "") for arg in rest[1:]):
        out.opaque.append("`git config` may change what `git push` overwrites")
    elif options := _GIT_RUNS.get(command or ""):
        option_scripts(f"{name} {command}", rest, frozenset(options.split()), out)


def _git_words(command: str, rest: Args, out: Out) -> None:
    """Find what runs something with any sub-command: remote helpers, settings of a new clone."""
    if doubt := _GIT_DOUBTS.get(command):
        out.opaque.append(f"`git {command}` {doubt}")
    for index, arg in enumerate(rest[1:], 1):
        text = arg.text or ""
        if match := _GIT_HELPER.search(text):
            out.opaque.append(f"`git {command}` is given a remote address that runs a program")
            out.inner.append(Inner("git ext::", script=match[1]))
        if command in ("clone", "init") and text.startswith("--te"):
            out.opaque.append(f"`git {command} --template` installs hooks")
        if command == "clone" and (text in ("-c", "--config") or re.match(r"-[lnqvs]*c|--con\w*=", text)):
            attached = text.partition("=")[2] if text.startswith("--") else text.partition("c")[2]
            _git_setting(
                Arg(attached, arg.kind) if attached else rest[index + 1] if rest[index + 1 :] else UNKNOWN, out
            )


def is_command_key(key: str) -> bool:
    """Whether a setting of git is known to name a program, or a file with more settings."""
    return _GIT_COMMAND_KEYS.match(key) is not None


def _git_setting(setting: Arg, out: Out) -> None:
    key, _, value = (setting.text or "").partition("=")
    if _GIT_PUSHES.match(key):
        out.opaque.append(f"`git -c {key}` may change what `git push` overwrites")
    if setting.sure is None or is_command_key(key) or value.startswith("!") or _GIT_HELPER.search(value):
        out.opaque.append(f"`git -c {key}` may run a program")
    if key.lower().startswith("alias."):
        via = "git -c alias"
        text = value[1:] if value.startswith("!") else f"git {value}"
        out.inner.append(Inner(via, script=text))
    elif value and is_command_key(key):
        out.inner.append(Inner(f"git -c {key}", script=value.removeprefix("!")))


def _trap(name: str, args: Args, out: Out) -> None:
    operands = args[1:]
    if operands and (text := operands[0].text) and text.startswith("-") and text != "-":
        operands = operands[1:] if text == "--" else ()
    if len(operands) > 1 and operands[0].sure not in ("-", ""):
        out.script(name, operands[0])
    elif operands and operands[0].sure is None:
        out.opaque.append("`trap` may run a text that is only known when it runs")


def _module(text: str, option: str) -> str | None:
    """Return what is attached to the option that names a module, alone or bundled with letters; None without it."""
    match = re.fullmatch(rf"-[BEIOPRSbdisuvqx]*{option[1:]}(.*)", text, re.DOTALL)
    return match[1] if match else None


def run_code(name: str, args: Args, language: Mapping[str, str], out: Out) -> None:
    """An interpreter of another language: code in its words or input is not understood; a file is a program."""
    codes, values = language["code"].split(), language["values"].split()
    letters = {code[1] for code in codes if len(code) == 2}
    at = 1
    while at < len(args):
        text = args[at].sure
        if text is not None and "stop" in language and (module := _module(text, language["stop"])) is not None:
            words = (*([Arg(module)] if module else []), *args[at + 1 :])
            if words and (named := words[0].sure) is not None:
                words = (Arg(named.removesuffix(".__main__")), *words[1:])
            if words:
                out.inner.append(Inner(f"{name} {language['stop']}", words))
            return
        if text is None or text in codes or text.partition("=")[0] in codes or text == "-" or text.startswith(_INPUTS):
            break
        if not text.startswith("-"):
            return
        if not text.startswith("--") and letters & set(text[1:]):
            break
        at += 2 if text in values else 1
    else:
        if any(arg.sure in language.get("files", "").split() for arg in args[1:]):
            return
    out.opaque.append(f"`{name}` runs code of another language")


SPECIAL: Mapping[str, Callable[[str, Args, Out], None]] = {
    **dict.fromkeys(_SHELLS, _shell),
    "find": _find, "gfind": _find, "fd": _fd, "fdfind": _fd, "git": _git, "trap": _trap,
    "sed": _sed, "gsed": _sed,
}  # fmt: skip
