"""Where the commands of a line run: every directory that a `cd` before them may have led to."""

from __future__ import annotations

from itertools import chain
from posixpath import normpath
from typing import TypeAlias

from signoff.policy.places import normal
from signoff.policy.shell.line import CommandLine, Join, Pipeline, Simple, Word

Directory: TypeAlias = "str | None"
"""A directory seen from where the line starts: `sub`, `../other`, `/absolute`, `~/below/home`, and empty for the start
itself. One with `..` behind a name, `link/../sub`, is meant as the disk has it; others by their text, as a shell takes
them first. Where links lead is for whoever looks at the disk. None: nobody can tell."""

Directories: TypeAlias = "frozenset[Directory]"

START: Directory = ""
MOST = 8
_NONE: Directories = frozenset()
_MOVERS = frozenset({"cd", "pushd", "popd"})
_WRAPPERS = frozenset({"command", "builtin", "-p", "--"})
"""Words before one of those that leave the shell in another directory just the same."""


def directories_of(line: CommandLine) -> tuple[Directories, ...]:
    """The directories that each simple command of a line may run in, in the order of `line.commands`.

    A command behind `&&` runs only if what is before it succeeded, so `cd a && b` runs `b` in `a` and nowhere else.
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
    """Every directory that a command of the line may run in, but the start: what links have to be followed for."""
    return tuple(dict.fromkeys(directory for directory in chain.from_iterable(directories_of(line)) if directory))


def is_cd(command: Simple) -> bool:
    return command.words[0].text == "cd"


def _led(pipeline: Pipeline, directories: Directories) -> Directories:
    """Where the line is once the pipeline succeeded. One of several commands moves nobody but itself."""
    first, *more = pipeline.stages
    if more or next((text for text in first.argv if text not in _WRAPPERS), "") not in _MOVERS:
        return directories
    if not is_cd(first):
        return frozenset({None})
    return frozenset(chain.from_iterable(_targets(first.words[1:], directory) for directory in directories))


def _targets(words: tuple[Word, ...], directory: Directory) -> tuple[Directory, ...]:
    """The directories that `cd` with these words may lead to from another. Options are left to people.

    A shell goes where the text leads, `..` taking away the name before it. If there is no such directory, it goes where
    the disk leads, where `..` is above what a link leads to.
    """
    operands = words[1:] if words and words[0].text == "--" else words
    if len(operands) != 1 or operands[0].glob or not operands[0].text or operands[0].text.startswith("-"):
        return (None,)
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
    """Whether it has a `..` behind a name, which may be that of a link."""
    steps = [step for step in text.split("/") if step not in ("", ".")]
    return ".." in steps[next((at for at, step in enumerate(steps) if step != ".."), len(steps)) :]


def _below_home(text: str) -> Directory:
    """A path that starts with `~`, where it stays below the home directory without going back."""
    led = normpath(text)
    return led if led.startswith("~/") and ".." not in text.split("/") else None
