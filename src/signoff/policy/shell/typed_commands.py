"""Which commands run what is typed at their terminal: `less`, `vim`, `python` without a script.

This matters for an agent that types into a running program without asking anybody: then the words of the command are
not all that runs. Only the programs of the table are known; the strict parser's line says what goes to the terminal.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from signoff.policy.phrases import shown
from signoff.policy.shell.command_facts import ShellFacts
from signoff.policy.table_files import table_text

Words = Sequence[str | None]
"""The words of a command; None for a word that is only known at run time."""
_VERSION = re.compile(r"[\d.]+\Z")
_ALWAYS, _SHOWS, _ALONE = "always", "shows", "alone"
_NAMES = ("commands", "words", "unless", "flags", "code")
_BEFORE = frozenset({"-C", "-c"})
"""Options with a value that may come before a sub-command."""


class _Way(NamedTuple):
    """One way in which a program takes commands from its terminal. The fields are the keys of the table."""

    how: str
    commands: frozenset[str]
    words: frozenset[str]
    unless: frozenset[str]
    flags: frozenset[str]
    code: frozenset[str]
    why: str

    def takes(self, rest: Words, *, shown_there: bool) -> bool:
        """Whether a command with these words behind the program's name takes commands in this way."""
        if self.how == _SHOWS and not shown_there:
            return False
        if self.how == _ALONE and self._has_code(rest):
            return False
        if self.commands:
            command, rest = _split(rest)
            if command is not None and command not in self.commands:
                return False
        if any(_is(word, name) for word in self._certain(rest) for name in self.unless):
            return False
        return not self.words or any(_may_be(word, name) for name in self.words for word in rest)

    def _has_code(self, rest: Words) -> bool:
        """Whether it is given something to run: by an option, or as a word that is no option's value."""
        return any(word in self.code or (word != "-" and not word.startswith("-")) for word in self._certain(rest))

    def _certain(self, rest: Words) -> Iterator[str]:
        """Yield the words that are what they look like: none behind `--`, and none that may be an option's value."""
        before = ""
        for word in rest:
            if word == "--":
                return
            if word is not None and (not before.startswith("-") or "=" in before or before in self.flags):
                yield word
            before = word or "-"


def typed_into(facts: ShellFacts) -> str:
    """Return why a command line runs what is typed at its terminal; "" if none of its programs is known to."""
    for argv, shown_there in _commands(facts):
        name = (argv[0] or "").rpartition("/")[2]
        for way in _ways().get(_VERSION.sub("", name) or name, ()):
            if way.takes(argv[1:], shown_there=shown_there):
                return f"{shown(name)} {way.why}"
    return ""


def _commands(facts: ShellFacts) -> Iterator[tuple[Words, bool]]:
    """Yield each command, and whether its output may go to the terminal: of a pipeline, that of the last one."""
    plain: set[Words] = set()
    for pipeline in facts.line.pipelines if facts.line is not None else ():
        for number, stage in enumerate(pipeline.stages, start=1):
            plain.add(stage.argv)
            yield stage.argv, number == len(pipeline.stages)
    if not facts.read_only or (facts.line is not None and not facts.line.plain):
        yield from ((argv, True) for argv in facts.commands if argv and argv not in plain)


def _split(rest: Words) -> tuple[str | None, Words]:
    """Return the sub-command and the words behind it; "" if there is none, None if it is only known at run time."""
    for at, (word, before) in enumerate(zip(rest, (None, *rest), strict=False)):
        if word is None:
            return None, ()
        if not word.startswith("-") and before not in _BEFORE:
            return word, rest[at + 1 :]
    return "", ()


def _is(word: str, name: str) -> bool:
    """Whether a word is this option: alone, with a value, or as the last of a bundle (`-am`)."""
    if name.startswith("--") or not name.startswith("-"):
        return word == name or word.startswith(f"{name}=")
    return word.startswith(name) or (word[:1] == "-" and word[1:2] != "-" and word.endswith(name[1:]))


def _may_be(word: str | None, name: str) -> bool:
    """Whether a word may be this sub-command or option: also abbreviated, or anywhere in a bundle."""
    if word is None or not name.startswith("-"):
        return word is None or word == name
    if name.startswith("--"):
        option = word.partition("=")[0]
        return len(option) > 3 and name.startswith(option)
    return word[:1] == "-" and word[1:2] != "-" and name[1:] in word


@lru_cache(maxsize=1)
def _ways() -> Mapping[str, Sequence[_Way]]:
    """Return the ways of each program."""
    found: dict[str, list[_Way]] = {}
    for entry in tomllib.loads(table_text("shell/typed_commands.toml"))["ways"]:
        named = {key: frozenset(str(entry.pop(key, "")).split()) for key in _NAMES}
        programs = str(entry.pop("programs")).split()
        way = _Way(**named, **entry)
        assert way.how in (_ALWAYS, _SHOWS, _ALONE), way.how
        for program in programs:
            found.setdefault(program, []).append(way)
    return found
