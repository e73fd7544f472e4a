"""The result of checking a condition: yes, no, or unknown (doubt)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from signoff.policy.phrases import cut


class Truth(Enum):
    """Three-valued logic. `UNKNOWN` is never treated as either of the others."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class MatchResult:
    """What a condition found out about a call, and why if it is not a plain yes."""

    truth: Truth
    why: str = ""
    raised: bool = False
    """Whether the condition raised an exception. Then even an allow rule is not skipped silently: it asks."""

    strange: bool = False
    """Whether the only doubt is what a program does that signoff does not know. An allow rule that names the command
    settles it."""

    @classmethod
    def no(cls, why: str) -> MatchResult:
        return cls(Truth.NO, why)

    @classmethod
    def unknown(cls, why: str) -> MatchResult:
        return cls(Truth.UNKNOWN, why)

    @classmethod
    def of_error(cls, doing: str, error: Exception) -> MatchResult:
        """Return the result for a condition that raised an exception."""
        return cls(Truth.UNKNOWN, f"{doing} failed with {in_one_line(error)}", raised=True)


YES = MatchResult(Truth.YES)
"""The result that says yes. A result that was pickled is another object, so it is compared by its `truth`."""


def any_holds(findings: Iterable[MatchResult]) -> MatchResult:
    """Return yes if one is yes; otherwise the doubt; otherwise the first no."""
    answer: MatchResult | None = None
    for finding in findings:
        if finding.truth is Truth.YES:
            return finding
        if answer is None or (finding.truth is Truth.UNKNOWN and outweighs(finding, answer)):
            answer = finding
    return answer or MatchResult.no("the rule matches nothing")


def outweighs(doubt: MatchResult, other: MatchResult) -> bool:
    """Whether a doubt takes precedence over another result, which is no or a doubt, too."""
    return other.truth is Truth.NO or doubt.raised or (other.strange and not doubt.strange)


def in_one_line(error: Exception) -> str:
    """Return the type and message of an error, shortened to one line, even if `str(error)` raises."""
    try:
        message = " ".join(str(error).split())
    except Exception as second:
        message = f"a message that raises {type(second).__name__}"
    return f"{type(error).__name__}: {cut(message, 200)}" if message else type(error).__name__
