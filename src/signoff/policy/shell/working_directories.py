"""The working directories of the commands in a line: every directory that a `cd` before them may have led to."""

from __future__ import annotations

from itertools import chain
from posixpath import normpath
from typing import TypeAlias

from signoff.policy.places import normal
from signoff.policy.shell.line import CommandLine, Join, Pipeline, Simple, Unknown, Word

Directory: TypeAlias = "str | None"
"""A directory relative to where the line starts: `sub`, `../other`, `/absolute`, `~/below/home`, and "" for the start
itself. One with `..` after a name, `link/../sub`, is meant physically, as on disk; others textually, as a shell reads
them first. Resolving symlinks is up to the caller. None: not known."""

Directories: TypeAlias = "frozenset[Directory]"

START: Directory = ""
MOST = 8
_NONE: Directories = frozenset()
_MOVERS = frozenset({"cd", "pushd", "popd"})
_WRAPPERS = frozenset({"command", "builtin", "-p", "--"})
"""Words before one of those that still change the directory of the shell."""


def directories_of(line: CommandLine) -> tuple[Directories, ...]:
    """Return the directories that each simple command of a line may run in, in the order of `line.commands`.

    A command after `&&` runs only if what is before it succeeded, so `cd a && b` runs `b` in `a` and nowhere else.
    """
    passed: Directories = frozenset({START})
    failed: Directories = frozenset()
    found: list[Directories] = []
    for pipeline in line.pipelines:
        here = {Join.AND: passed, Join.OR: failed, Join.ALWAYS: passed | failed}[pipeline.join]
        found.extend([here] * len(pipeline.stages))
        led = _led(pipeline, here)
        lost = here | (led & {None})
        left_out = {Join.AND: (_NONE, failed), Join.OR: (passed, _NONE), Join.ALWAYS: (_NONE, _NONE)}[pipeline.join]
        passed, failed = led | left_out[0], lost | left_out[1]
        if len(passed | failed) > MOST:
            passed = failed = frozenset({None})
    return tuple(found)


def named(line: CommandLine) -> tuple[str, ...]:
    """Return every directory other than the start that a command of the line may run in: symlinks to resolve."""
    return tuple(dict.fromkeys(directory for directory in chain.from_iterable(directories_of(line)) if directory))


def is_cd(command: Simple) -> bool:
    return command.words[0].text == "cd"


def _led(pipeline: Pipeline, directories: Directories) -> Directories:
    """Return where the line is after the pipeline succeeded.

    In a pipeline of several commands, only a `cd` in the last one has an effect, and only in some shells, as in zsh.
    """
    *before, last = pipeline.stages
    if next((text for text in last.argv if text not in _WRAPPERS), "") not in _MOVERS:
        return directories
    stays = directories if before else _NONE
    if not is_cd(last):
        return stays | {None}
    return stays.union(chain.from_iterable(_targets(last.words[1:], directory) for directory in directories))


def _targets(words: tuple[Word, ...], directory: Directory) -> tuple[Directory, ...]:
    """Return the directories that `cd` with these words may lead to from another. With options: not known (None).

    A shell first goes where the text leads: `..` removes the name before it. If there is no such directory, it goes
    where the disk leads: `..` is then the parent of a symlink's target.
    """
    operands = words[1:] if words and words[0].text == "--" else words
    if not words:
        return ("~",)
    if len(operands) != 1 or operands[0].unknown is not Unknown.NOT:
        return (None,)
    if operands[0].glob or not operands[0].text or operands[0].text[0] in "-+":
        return (None,)  # `-` is where it was before, and `+1`, in some shells, an entry of a stack
    text = operands[0].text
    if operands[0].tilde:
        return (_below_home(text),)
    if not text.startswith("/"):
        if directory is None or text.startswith("~"):
            return (None,)
        if directory.startswith("~"):
            return (_below_home(f"{directory}/{text}"),)
        text = f"{directory}/{text}" if directory else text
    led = _by_text(text)
    return (led,) if led is None or not _goes_back(text) else (led, text)


def _by_text(text: str) -> Directory:
    if text.startswith("/"):
        return normal(text)
    led = normpath(text)
    return START if led == "." else None if led.startswith("~") else led


def _goes_back(text: str) -> bool:
    """Whether it has a `..` after a name, which may be a symlink."""
    steps = [step for step in text.split("/") if step not in ("", ".")]
    return ".." in steps[next((at for at, step in enumerate(steps) if step != ".."), len(steps)) :]


def _below_home(text: str) -> Directory:
    """Return a path that starts with `~` if it is the home directory or stays below it without `..`; otherwise None."""
    led = normpath(text)
    return led if (led == "~" or led.startswith("~/")) and ".." not in text.split("/") else None
