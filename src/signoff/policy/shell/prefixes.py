"""What may be remembered of a command line besides all of it: its first words, with names that may vary behind them.

Only a line that is one simple command of a program in `prefixes.toml` has a prefix. Whoever approves `pytest -x *`
approves those words with any names and paths below the folder, and nothing that a shell or the program could take for
more: no further option, no variable, no pattern for files, no place elsewhere, no secret.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

from signoff.policy.places import runs_later
from signoff.policy.secret import secret_place
from signoff.policy.shell.line import Simple
from signoff.policy.shell.words import Refused, read_line

NAME = "NAME"
_SCRIPT = re.compile(r"(?:build|check|compile|format|lint|test|typecheck)(?:[:-][a-z0-9]+)*", re.ASCII)
"""Scripts of a project whose names say that operands only choose. `npm run env X` would run X."""
_ELSEWHERE = frozenset({"--pyargs"})
"""Options after which names are no paths: they may be found anywhere."""
_LONGEST = 120
"""A prefix that is longer is not one readable line."""
_PLAIN = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_@.,+/-]*(?:::[A-Za-z0-9_]+)*", re.ASCII)
"""A name or a path; `::` as test runners have it. No `=` or `:`, which programs take for settings and addresses, and no
`@` in front, behind which some read their options from a file."""
_FIXED = re.compile(r"[A-Za-z0-9_@.,+/:=-]+", re.ASCII)
"""A word that reads the same with and without quotes."""


class Prefix(NamedTuple):
    """What a command line has in common with others like it."""

    text: str
    """The words that stay, and `*`."""
    names: tuple[str, ...]
    """The words that `*` stands for here."""


def prefix_of(line: str) -> Prefix | None:
    """The prefix of a command line; None where there is none that may be remembered."""
    read = read_line(line)
    if isinstance(read, Refused) or len(read.commands) != 1:
        return None
    [simple] = read.commands
    if simple.redirects or any(word.glob or word.tilde for word in simple.words):
        return None
    fixed = _fixed(simple)
    if not fixed or not _ELSEWHERE.isdisjoint(simple.argv) or not all(map(_FIXED.fullmatch, simple.argv[:fixed])):
        return None
    text = " ".join((*simple.argv[:fixed], "*"))
    names = simple.argv[fixed:]
    return Prefix(text, names) if len(text) <= _LONGEST and all(map(_is_plain, names)) else None


def _fixed(simple: Simple) -> int:
    """How many words stay as they are; 0 where the command is not one of those that are known."""
    argv = simple.argv
    for words, flags in _commands():
        if len(argv) >= len(words) and all(map(_is_word, words, argv)):
            rest = range(len(words), len(argv))
            last = max((at for at in rest if argv[at].startswith("-")), default=len(words) - 1)
            takes_next = last >= len(words) and argv[last] not in flags and "=" not in argv[last]
            return min(last + 1 + takes_next, len(argv))
    return 0


def _is_word(wanted: str, word: str) -> bool:
    return word == wanted or (wanted == NAME and bool(_SCRIPT.fullmatch(word)))


def _is_plain(word: str) -> bool:
    """Whether a word is nothing but a name or a path below the folder."""
    steps = word.split("/")
    below = not word.startswith("/") and ".." not in steps and "" not in steps[:-1] and word not in (".", "./")
    return below and bool(_PLAIN.fullmatch(word)) and not runs_later(word) and not secret_place(word)


@lru_cache(maxsize=1)
def _commands() -> Sequence[tuple[tuple[str, ...], frozenset[str]]]:
    """The first words of each command and the options that take no value, the longest first."""
    data: Mapping[str, Mapping[str, str]] = tomllib.loads(
        files("signoff.policy.shell").joinpath("prefixes.toml").read_text(encoding="utf-8")
    )
    found = [
        (tuple(line.split()), frozenset(group["flags"].split()))
        for group in data.values()
        for line in group["commands"].strip().splitlines()
    ]
    return sorted(found, key=lambda one: -len(one[0]))
