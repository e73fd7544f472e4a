"""Command prefixes: what may be remembered of a command line besides all of it, its first words and varying names.

Only a line that is one simple command of a program in `prefixes.toml` has a prefix. An approval of `pytest -x *`
covers those words with names and paths below the directory, and nothing that a shell or the program could read as
more: no further option, variable, glob, place elsewhere, secret, or file of another kind.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from signoff.policy.places import runs_later
from signoff.policy.secret import secret_place
from signoff.policy.shell.literal_words import Refused, read_line
from signoff.policy.table_files import table_text

_HANDED_ON = re.compile(r".*pyargs.*|--?args(?:=.*)?")
"""Options after which names are not paths: they may be found anywhere, or are passed on to another program."""
_LONGEST = 118
"""A longer prefix is not one readable line."""
_PLAIN = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_@.,+/-]*(?:::[A-Za-z0-9_]+)*", re.ASCII)
"""A name or a path; `::` as in test runners. No `=` or `:`, which programs read as settings and addresses, and no
leading `@`, after which some read their options from a file."""
_FIXED = re.compile(r"[A-Za-z0-9_@.,+/:=-]+", re.ASCII)
"""A word that reads the same with and without quotes."""


class Prefix(NamedTuple):
    """What a command line has in common with similar ones."""

    words: str
    """The fixed words."""
    names: tuple[str, ...]
    """The words after them, which may vary."""

    @property
    def paths(self) -> list[str]:
        """The names as paths: without the test in a file that they may name."""
        return [name.partition("::")[0] for name in self.names]


def prefix_of(line: str) -> Prefix | None:
    """Return the prefix of a command line; None if there is none that may be remembered."""
    read = read_line(line)
    if isinstance(read, Refused) or len(read.commands) != 1:
        return None
    [simple] = read.commands
    if simple.redirects or any(word.glob or word.tilde for word in simple.words):
        return None
    argv = simple.argv
    command = next((one for one in _commands() if argv[: len(one.words)] == one.words), None)
    if command is None or any(map(_HANDED_ON.fullmatch, argv)):
        return None
    fixed = _fixed(argv, command)
    words, names = " ".join(argv[:fixed]), argv[fixed:]
    if len(words) > _LONGEST or not all(map(_FIXED.fullmatch, argv[:fixed])):
        return None
    return Prefix(words, names) if all(_is_plain(name) and command.names.fullmatch(name) for name in names) else None


class _Command(NamedTuple):
    """A command that may have a prefix."""

    words: tuple[str, ...]
    """Its first words."""
    flags: frozenset[str]
    """Options without a value."""
    names: re.Pattern[str]
    """What each of its operands must match."""


def _fixed(argv: Sequence[str], command: _Command) -> int:
    """Return how many words are fixed."""
    start = len(command.words)
    last = max((at for at in range(start, len(argv)) if argv[at].startswith("-")), default=start - 1)
    takes_next = last >= start and argv[last] not in command.flags and "=" not in argv[last]
    return min(last + 1 + takes_next, len(argv))


def _is_plain(word: str) -> bool:
    """Whether a word is only a name or a path below the directory."""
    steps = word.split("/")
    below = not word.startswith("/") and ".." not in steps and "" not in steps[:-1] and word not in (".", "./")
    return below and bool(_PLAIN.fullmatch(word)) and not runs_later(word) and not secret_place(word)


@lru_cache(maxsize=1)
def _commands() -> Sequence[_Command]:
    """Return every command, longest first."""
    data: Mapping[str, Mapping[str, str]] = tomllib.loads(table_text("shell/prefixes.toml"))
    found = [
        _Command(tuple(line.split()), frozenset(group["flags"].split()), re.compile(group["names"], re.ASCII))
        for group in data.values()
        for line in group["commands"].strip().splitlines()
    ]
    return sorted(found, key=lambda one: -len(one.words))
