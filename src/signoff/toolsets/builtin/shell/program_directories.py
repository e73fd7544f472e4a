"""Commands that name a folder of programs which run by name: whoever writes there decides what those do."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from signoff.policy.phrases import shown
from signoff.policy.places import folded
from signoff.policy.shell.facts import ShellFacts, read_shell
from signoff.policy.shell.programs import ReadOnlyCommand
from signoff.toolsets.builtin.programs import changed_by
from signoff.toolsets.builtin.shell.environment import home_folder

_WILD = re.compile(r"[*?\[]")
_MOST_FOLDERS = 32


def changes_programs(command: str, programs: Sequence[str], root: str) -> str:
    """Why a command is asked about, whatever rules say: a word of it leads to one of the folders. Empty otherwise."""
    if not programs:
        return ""
    facts = read_shell(command)
    folders = _gone_to(facts, root)
    if len(folders) > _MOST_FOLDERS:
        return "too many `cd` make it unclear whether it changes folders that this project runs programs from by name"
    for name, word in _words(facts):
        if found := _spelled_in(word, programs, root) or _led_to(word, folders, programs, root):
            inside = shown(os.path.relpath(found, root))
            return f"{shown(name)} may change {inside}, and this project runs programs from there by name"
    return ""


def _spelled_in(word: str, programs: Sequence[str], root: str) -> str:
    """The folder whose path stands in a word, whatever is around it: `of=tools/bin/x`, code of another language."""
    text = word.casefold()
    for folder in programs:
        inside = re.escape(os.path.relpath(folder, root).casefold())
        if re.search(rf"(?<![\w.-]){inside}(?![\w.-])", text):
            return folder
    return ""


def _led_to(word: str, folders: Sequence[str], programs: Sequence[str], root: str) -> str:
    """The folder that a path leads to from one of those that the line may be in."""
    for folder in folders:
        for part in map(_expanded, _parts(word)):
            if _WILD.search(part):
                found = next((one for one in programs if _may_stand_for(os.path.join(folder, part), one, root)), "")
            else:
                path = os.path.join(folder, part)
                ways = {os.path.normpath(path), os.path.realpath(path)}
                found = next((one for way in ways if (one := changed_by(way, programs, root))), "")
            if found:
                return found
    return ""


def _may_stand_for(pattern: str, folder: str, root: str) -> bool:
    """Whether a pattern for files may stand for a folder, for one above it and below the root, or for what is in it."""
    steps, names = ([folded(step) for step in path.split("/")] for path in (os.path.normpath(pattern), folder))
    is_below = len(steps) > len(root.rstrip("/").split("/"))
    return is_below and all(name == step or fnmatchcase(name, step) for name, step in zip(names, steps, strict=False))


def _gone_to(facts: ShellFacts, root: str) -> list[str]:
    """The folder that a line starts in, and those that each `cd` in it may lead to from one before."""
    folders = [root]
    for argv in facts.commands:
        words = [_expanded(word) for word in argv[1:] if word] if argv[0] in ("cd", "pushd") else []
        led = [os.path.normpath(os.path.join(folder, word)) for folder in folders for word in words]
        folders = list(dict.fromkeys((*folders, *led)))
        if len(folders) > _MOST_FOLDERS:
            break
    return folders


def _words(facts: ShellFacts) -> Iterator[tuple[str, str]]:
    """What may be a path in commands that do more than read, each with its program."""
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
    """A word, and the value that it may hold: `--target-directory=bin`, `-tbin`, `of=bin`."""
    _, equals, value = word.partition("=")
    yield from [value] if equals and value else []
    if not word.startswith("-"):
        yield word
    elif len(word) > 2 and word[1] != "-":
        yield word[2:]


def _expanded(word: str) -> str:
    return home_folder() + word[1:] if word == "~" or word.startswith("~/") else word
