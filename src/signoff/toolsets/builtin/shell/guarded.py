"""Commands that name a folder of programs which run by name: whoever writes there decides what those do."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from signoff.policy.shell.facts import ShellFacts, read_shell
from signoff.policy.shell.programs import Reading
from signoff.policy.wording import shown
from signoff.toolsets.builtin.programs import changed_by
from signoff.toolsets.builtin.shell.environment import home_folder

_GLOB = re.compile(r"[^/]*[*?\[].*", re.DOTALL)


def changes_programs(command: str, programs: Sequence[str], root: str) -> str:
    """Why a command is asked about, whatever rules say: a word of it leads to one of the folders. Empty otherwise."""
    if not programs:
        return ""
    facts = read_shell(command)
    folders = [root, *_gone_to(facts, root)]
    for name, word in _words(facts):
        for folder in folders:
            for path in {os.path.normpath(os.path.join(folder, word)), os.path.realpath(os.path.join(folder, word))}:
                if found := changed_by(path, programs, root):
                    inside = shown(os.path.relpath(found, root))
                    return f"{shown(name)} may change {inside}, and this project runs programs from there by name"
    return ""


def _gone_to(facts: ShellFacts, root: str) -> Iterator[str]:
    """The folders that a `cd` in it may lead to."""
    for argv in facts.commands:
        if argv[0] in ("cd", "pushd"):
            yield from (os.path.join(root, _expanded(word)) for word in argv[1:] if word)


def _words(facts: ShellFacts) -> Iterator[tuple[str, str]]:
    """What may be a path in commands that do more than read, each with its program."""
    reads = (
        [one.argv for one, judged in zip(facts.line.commands, facts.judged, strict=True) if isinstance(judged, Reading)]
        if facts.line
        else []
    )
    for argv in facts.commands:
        if argv in reads:
            continue
        for word in argv[1:]:
            for part in _parts(word or ""):
                yield argv[0] or "…", _expanded(_GLOB.sub("", part) or ".")
    if facts.line is None:
        yield from (("a redirect", _expanded(target)) for target in facts.tree.writes)


def _parts(word: str) -> Iterator[str]:
    """A word, and the value that it may hold: `--target-directory=bin`, `-tbin`."""
    if not word.startswith("-"):
        yield from [word] if word else []
        return
    _, equals, value = word.partition("=")
    yield from [value] if equals and value else []
    yield from [word[2:]] if len(word) > 2 and word[1] != "-" else []


def _expanded(word: str) -> str:
    return home_folder() + word[1:] if word == "~" or word.startswith("~/") else word
