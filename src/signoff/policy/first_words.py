"""The condition that a command begins with certain words, and only names of the kind that its program is for follow."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from signoff.core.call import Call, Veiled
from signoff.policy.call_paths import COMMAND, Facts, is_below
from signoff.policy.match import Links, text_argument
from signoff.policy.match_result import YES, MatchResult
from signoff.policy.phrases import shown
from signoff.policy.shell.prefixes import prefix_of


class BadWords(ValueError):
    """First words of a command behind which nothing may vary; the message says why and what to write."""


@dataclass(frozen=True, slots=True)
class FirstWordsCondition:
    """The command is a single one that begins with exactly these words. Only names and paths follow: see `prefix_of`.

    Only for a toolset that says in which directory its commands start, and in the directory of the policy.
    """

    words: str
    text: str = field(init=False, compare=False)
    no: MatchResult = field(init=False, repr=False, compare=False)
    links: ClassVar[Links] = Links.WORDS

    def __post_init__(self) -> None:
        """Raises `BadWords` if no command may vary behind these words."""
        read = prefix_of(self.words)
        if read is None or read.words != self.words:
            raise BadWords(
                f"{shown(self.words)} is no command behind which only names may vary, with nothing but its options; "
                "write the whole command as a `command` pattern"
            )
        object.__setattr__(self, "text", f"with a command of {shown(self.words)} and names of the kind that it is for")
        object.__setattr__(
            self, "no", MatchResult.no(f"the command is not {shown(self.words)} with only names after it")
        )

    def find(self, facts: Facts) -> MatchResult:
        line = text_argument(facts, COMMAND, "a command line")
        if isinstance(line, MatchResult):
            return line
        start = facts.call.start
        if not start or start != facts.root:
            return MatchResult.no("the command does not start in the directory of the policy, as far as is known")
        read = prefix_of(line)
        if read is None or read.words != self.words:
            return self.no
        leads = facts.call.resolved
        outside = next((one for one in read.paths if one in leads and not is_below(leads[one], start)), None)
        return YES if outside is None else MatchResult.no(f"{shown(outside)} leads to {shown(leads[outside])}")


def paths_in(call: Call) -> Iterator[str]:
    """Yield the names in the command of a call that a condition on its first words leaves open."""
    line = call.args.get(COMMAND)
    if isinstance(line, str) and not isinstance(line, Veiled) and (read := prefix_of(line)) is not None:
        yield from read.paths
