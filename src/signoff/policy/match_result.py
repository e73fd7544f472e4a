"""The answer to "does this condition hold?": yes, no, or that nobody can tell."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class Truth(Enum):
    """Three values. `UNKNOWN` is never taken for either of the others."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class MatchResult:
    """What a condition found out about a call, and why it is not a plain yes."""

    truth: Truth
    why: str = ""
    raised: bool = False
    """An exception was raised on the way. Then not even an allow rule is passed over in silence."""

    @classmethod
    def no(cls, why: str) -> MatchResult:
        return cls(Truth.NO, why)

    @classmethod
    def unknown(cls, why: str) -> MatchResult:
        return cls(Truth.UNKNOWN, why)

    @classmethod
    def of_error(cls, doing: str, error: Exception) -> MatchResult:
        """The finding where a condition raised instead of answering."""
        return cls(Truth.UNKNOWN, f"{doing} failed with {in_one_line(error)}", raised=True)


YES = MatchResult(Truth.YES)
"""The only finding that says yes; conditions return this very object."""


def any_holds(findings: Iterable[MatchResult]) -> MatchResult:
    """Yes if one is; otherwise what is unknown; otherwise the first no."""
    answer: MatchResult | None = None
    for finding in findings:
        if finding is YES:
            return finding
        if answer is None or (finding.truth is Truth.UNKNOWN and (answer.truth is Truth.NO or finding.raised)):
            answer = finding
    return answer or MatchResult.no("the rule matches nothing")


def in_one_line(error: Exception) -> str:
    """The type and message of an error, short, even where the message itself cannot be made."""
    try:
        message = " ".join(str(error).split())
    except Exception as second:
        message = f"a message that raises {type(second).__name__}"
    return f"{type(error).__name__}: {message[:200]}" if message else type(error).__name__
