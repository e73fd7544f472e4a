"""Doubt about the files that a shell command may touch, beyond those that it names: for every condition on paths."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol

from signoff.core.call import UNFOLLOWED
from signoff.policy.call_paths import Facts, PathText
from signoff.policy.match_result import MatchResult
from signoff.policy.phrases import shown


class FileCondition(Protocol):
    """A condition on the files that a call is about."""

    @property
    def text(self) -> str:
        """What it checks: `on a path like x`."""
        ...

    def is_about(self, path: PathText, facts: Facts) -> bool:
        """Whether a file that a command may touch is, or may be, such a file."""
        ...

    def may_hold(self, pattern: str, facts: Facts, *, floating: bool = True) -> bool:
        """Whether a file pattern of a command may stand for such a file.

        Unless `floating`, names that may be in any directory do not count: what is below the one that a command reads,
        only the disk tells.
        """
        ...


def touched_doubt(condition: FileCondition, facts: Facts) -> MatchResult | None:
    """Return doubt if a shell command in the call may touch such a file, beyond those that it names; None if not."""
    touched = facts.touched
    if touched is None:
        return None
    if touched.opaque:
        return MatchResult.unknown(touched.opaque)
    for pattern in touched.patterns:
        if condition.may_hold(pattern, facts):
            return MatchResult.unknown(f"{shown(pattern)} may stand for {condition.text.removeprefix('on ')}")
    for pattern, _ in (*touched.below, *touched.given):
        if condition.may_hold(pattern, facts, floating=False):
            return MatchResult.unknown(f"it reads or writes what is below {shown(_directory_of(pattern))}")
    for pattern, _ in touched.below:
        if why := _below(condition, pattern, facts):
            return MatchResult.unknown(why)
    for path in (*touched.words, *touched.maybe):
        if condition.is_about(facts.touched_path(path), facts):
            return MatchResult.unknown(f"it may touch {shown(path)}")
    return replace(MatchResult.unknown(touched.strange), strange=True) if touched.strange else None


def _below(condition: FileCondition, pattern: str, facts: Facts) -> str:
    """Return why a recursive command may touch such a file, by what is known of the disk; "" if nothing says so."""
    if facts.call.resolved.get(pattern) == UNFOLLOWED:
        return f"what is below {shown(_directory_of(pattern))} cannot be looked at completely"
    found = (path for path in facts.files.standing_for(pattern) if condition.is_about(facts.touched_path(path), facts))
    return next((f"it reads or writes {shown(path)}" for path in found), "")


def _directory_of(pattern: str) -> str:
    """Return the directory of a pattern for everything below it."""
    return pattern.rpartition("//")[0] or "."
