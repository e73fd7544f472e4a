"""Detect commands that may write into a directory whose programs are run by name: that would change what runs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from signoff.policy.phrases import shown
from signoff.policy.places import folded
from signoff.policy.shell.command_facts import ShellFacts, read_shell
from signoff.policy.shell.simple_command import ReadOnlyCommand
from signoff.toolsets.builtin.named_programs import changed_by
from signoff.toolsets.builtin.shell.environment import home_directory

_WILD = re.compile(r"[*?\[]")
_MOST_DIRECTORIES = 32


def changes_programs(command: str, programs: Sequence[str], root: str) -> str:
    """Why a command is asked about whatever rules say: a word of it leads to a program directory. Empty otherwise."""
    if not programs:
        return ""
    facts = read_shell(command)
    directories = _gone_to(facts, root)
    if len(directories) > _MOST_DIRECTORIES:
        return (
            "too many `cd` make it unclear whether it changes directories that this project runs programs from by name"
        )
    for name, word in _words(facts):
        if found := _spelled_in(word, programs, root) or _led_to(word, directories, programs, root):
            inside = shown(os.path.relpath(found, root))
            return f"{shown(name)} may change {inside}, and this project runs programs from there by name"
    return ""


def _spelled_in(word: str, programs: Sequence[str], root: str) -> str:
    """The directory whose path occurs inside a word: `of=tools/bin/x`, or code of another language."""
    text = word.casefold()
    for directory in programs:
        inside = re.escape(os.path.relpath(directory, root).casefold())
        if re.search(rf"(?<![\w.-]){inside}(?![\w.-])", text):
            return directory
    return ""


def _led_to(word: str, directories: Sequence[str], programs: Sequence[str], root: str) -> str:
    """The directory that a path leads to, from any directory that the line may be in."""
    for directory in directories:
        for part in map(_expanded, _parts(word)):
            if _WILD.search(part):
                found = next((one for one in programs if _may_stand_for(os.path.join(directory, part), one, root)), "")
            else:
                path = os.path.join(directory, part)
                ways = {os.path.normpath(path), os.path.realpath(path)}
                found = next((one for way in ways if (one := changed_by(way, programs, root))), "")
            if found:
                return found
    return ""


def _may_stand_for(pattern: str, directory: str, root: str) -> bool:
    """Whether a glob may match a program directory, one between it and the root, or something in it."""
    steps, names = ([folded(step) for step in path.split("/")] for path in (os.path.normpath(pattern), directory))
    is_below = len(steps) > len(root.rstrip("/").split("/"))
    return is_below and all(name == step or fnmatchcase(name, step) for name, step in zip(names, steps, strict=False))


def _gone_to(facts: ShellFacts, root: str) -> list[str]:
    """The directory that a line starts in, and those that its `cd` commands may lead to."""
    directories = [root]
    for argv in facts.commands:
        words = [_expanded(word) for word in argv[1:] if word] if argv[0] in ("cd", "pushd") else []
        led = [os.path.normpath(os.path.join(directory, word)) for directory in directories for word in words]
        directories = list(dict.fromkeys((*directories, *led)))
        if len(directories) > _MOST_DIRECTORIES:
            break
    return directories


def _words(facts: ShellFacts) -> Iterator[tuple[str, str]]:
    """Possible paths in commands that do more than read, each with its program."""
    reads = (
        [
            one.argv
            for one, judged in zip(facts.line.commands, facts.judged, strict=True)
            if isinstance(judged, ReadOnlyCommand)
        ]
        if facts.line
        else []
    )
    for argv in facts.commands:
        if argv in reads:
            continue
        yield from ((argv[0] or "…", word) for word in argv[1:] if word)
    if facts.line is None:
        yield from (("a redirect", target) for target in facts.tree.writes)


def _parts(word: str) -> Iterator[str]:
    """A word, and the value that it may contain: `--target-directory=bin`, `-tbin`, `of=bin`."""
    _, equals, value = word.partition("=")
    yield from [value] if equals and value else []
    if not word.startswith("-"):
        yield word
    elif len(word) > 2 and word[1] != "-":
        yield word[2:]


def _expanded(word: str) -> str:
    return home_directory() + word[1:] if word == "~" or word.startswith("~/") else word
