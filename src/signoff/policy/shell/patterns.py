"""Command patterns of rules: `git status`, `npm run *`, `rm -rf`. Held against words, never against the text of a line.

A rule that allows means exactly these words; a last `*` stands for any more. A rule that asks or denies is not talked
out of it: options count wherever they stand and however they are bundled or shortened, operands in their order.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from typing import NamedTuple

from signoff.policy.finding import Truth
from signoff.policy.glob import Glob
from signoff.policy.shell.line import Simple
from signoff.policy.shell.programs import Concern
from signoff.policy.shell.table import program
from signoff.policy.shell.tree import parse_tree
from signoff.policy.shell.words import Refused, read_line

READ_ONLY = "read-only"
"""Stands in the place of a pattern for every command that is known to only read."""


_ANY = "program"


class BadCommand(ValueError):
    """A pattern that cannot be used; the message says why and what to write."""


@dataclass(frozen=True, slots=True)
class CommandPattern:
    """One pattern, as words."""

    text: str
    words: tuple[Glob, ...] = field(init=False, repr=False, compare=False)
    open: bool = field(init=False, repr=False, compare=False)
    """Whether any more words may follow."""

    def __post_init__(self) -> None:
        """Raises `BadCommand`, or `BadGlob` where a word is no pattern."""
        words = _words(self.text)
        tail = len(words) > 1 and words[-1] == "*"
        if not words[0].strip("*"):
            raise BadCommand("a pattern starts with a program; leave `command` out for every command")
        object.__setattr__(self, "open", tail)
        object.__setattr__(self, "words", tuple(Glob(word, over_names=True) for word in words[: len(words) - tail]))

    @property
    def breadth(self) -> str:
        """Why a rule that allows it allows more than it seems to: the program runs whatever it is given."""
        name = self.words[0].literal
        if name is None:
            return "any program whose name fits may run"
        known = program(name.lower().removesuffix(".exe").rpartition("/")[2])
        options = all(glob.pattern.startswith("-") for glob in self.words[1:])
        if known is None or not options or (len(self.words) > 1 and not self.open):
            return ""
        trouble = known.trouble or known.needs_trouble
        if not trouble.startswith(("runs", "changes")):
            return ""
        if trouble.startswith("runs") and not self.open and not parse_tree(name).opaque:
            return ""  # alone it runs what the project says; an interpreter would run its input
        return f"`{name}` runs whatever it is given"

    def covers(self, command: Simple, concern: Concern | None = None) -> Truth:
        """Whether a rule that allows the pattern allows the command: word for word.

        `concern` is what is known against the command: a last `*` does not stand for words that run other programs.
        """
        words = command.words
        if len(words) < len(self.words) or (len(words) > len(self.words) and not self.open):
            return Truth.NO
        if any(word.glob or word.tilde for word in words):
            return Truth.UNKNOWN  # what the shell puts in their place is not what the rule names
        more = {word.text.partition("=")[0] for word in words[len(self.words) :]}
        if concern is not None and concern.effect == "runs" and more & {concern.word, *concern.command.split()}:
            return Truth.UNKNOWN
        truths = [glob.find(word.text) for glob, word in zip(self.words, words, strict=False)]
        if Truth.NO in truths:
            return Truth.NO
        return Truth.UNKNOWN if Truth.UNKNOWN in truths else Truth.YES

    def finds(self, argv: Sequence[str | None]) -> Truth:
        """Whether a rule that asks about or denies the pattern means this command."""
        program = argv[0] if argv else None
        if program is None:
            return Truth.UNKNOWN
        known = _synonyms().get(self.words[0].pattern, Synonyms())
        wanted = (self.words[0], *known.names)
        if all(glob.find(name) is Truth.NO for name in {program, program.rpartition("/")[2]} for glob in wanted):
            return Truth.NO
        unknown = None in argv
        rest = [word for word in argv[1:] if word is not None]
        options = [glob.pattern for glob in self.words[1:] if glob.pattern.startswith("-")]
        operands = [glob for glob in self.words[1:] if not glob.pattern.startswith("-")]
        found = all(_has_option(rest, option, known) for option in options) and _in_order(rest, operands)
        return Truth.YES if found else Truth.UNKNOWN if unknown else Truth.NO


def _words(text: str) -> list[str]:
    """The words of a pattern: a line as the strict reading takes it, wildcards left as they are."""
    line = read_line(f"{_ANY} {text}")  # a wildcard may stand for the program, too
    if isinstance(line, Refused):
        raise BadCommand(f"it {line.why}; a pattern is one simple command")
    if len(line.commands) != 1 or line.commands[0].redirects:
        raise BadCommand("a pattern is one simple command, without redirects; write a list for several")
    words = [word.glob or word.text for word in line.commands[0].words[1:]]
    if not words:
        raise BadCommand("it is empty; leave `command` out for every command")
    if any("\\" in word for word in words):
        raise BadCommand("a pattern has no quoted wildcards and no backslashes")
    return words


class Synonyms(NamedTuple):
    """What means the same as a program's name and its options."""

    names: tuple[Glob, ...] = ()
    same: tuple[frozenset[str], ...] = ()

    def of(self, option: str) -> frozenset[str]:
        """The spellings of one option, its own among them."""
        return next((group for group in self.same if option in group), frozenset({option}))


@lru_cache(maxsize=1)
def _synonyms() -> Mapping[str, Synonyms]:
    data = tomllib.loads(files("signoff.policy.shell").joinpath("synonyms.toml").read_text(encoding="utf-8"))
    return {
        name: Synonyms(
            tuple(Glob(other, over_names=True) for other in str(entry.get("names", "")).split()),
            tuple(frozenset(group.split()) for group in entry.get("same", ())),
        )
        for name, entry in data.items()
    }


def _has_option(words: Sequence[str], option: str, known: Synonyms) -> bool:
    """Whether an option is given in any of its spellings; of a bundle, each of its letters."""
    bundled = len(option) > 2 and not option.startswith("--") and option not in words
    parts = [f"-{letter}" for letter in option[1:]] if bundled else [option]
    return all(any(_is_given(words, spelling) for spelling in known.of(part)) for part in parts)


def _is_given(words: Sequence[str], option: str) -> bool:
    if option.startswith("--"):
        name, equals, _ = option.partition("=")
        given = {word.partition("=")[0] for word in words if word.startswith("--")}
        if equals and option in words:
            return True
        return not equals and any(len(word) > 2 and name.startswith(word) for word in given)
    bundles = [word[1:] for word in words if len(word) > 1 and word[0] == "-" and word[1] != "-"]
    return option in words or (len(option) == 2 and any(option[1] in bundle for bundle in bundles))


def _in_order(words: Sequence[str], wanted: Sequence[Glob]) -> bool:
    rest = iter(words)
    return all(any(glob.find(word) is not Truth.NO for word in rest) for glob in wanted)
