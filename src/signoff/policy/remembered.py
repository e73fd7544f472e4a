"""What a remembered answer covers: its match is judged as that of a rule, and in doubt it covers nothing."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, cast

from signoff.core.grant import Grant
from signoff.core.json_text import read, writer
from signoff.errors import PolicyError
from signoff.policy.call_paths import Facts
from signoff.policy.document import document_of
from signoff.policy.match import Match
from signoff.policy.match_result import Truth
from signoff.policy.parse_match import read_matches
from signoff.policy.placed_value import ConfigValue

UNREADABLE = "which calls it covers cannot be read"
"""Why a remembered answer covers nothing."""
_KEYS = {"args"}
"""What a match may say. Which tool it is about, whose, and where, a remembered answer says itself; and of what else a
rule may say, nobody looks up beforehand what it needs to know of the disk."""
_text = writer()


def covers(grant: Grant, facts: Facts) -> Truth:
    """Whether a remembered answer covers a call. Not known: it may say no to the call, so people decide."""
    if grant.match is None:
        return Truth.YES if grant.covers_exactly(facts.call) else Truth.NO
    return holds(grant.match, facts, approved=grant.approved) if grant.is_about(facts.call) else Truth.NO


def holds(match: Mapping[str, Any], facts: Facts, *, approved: bool = True) -> Truth:
    """Whether a match holds for a call: for an approval without doubt, as in an allow rule."""
    found = _parsed(match, approved=approved)
    if found is None:
        return Truth.NO if approved else Truth.UNKNOWN
    truth = found.find(facts).truth
    return Truth.NO if approved and truth is not Truth.YES else truth


def is_unreadable(grant: Grant) -> bool:
    """Whether it cannot be read which calls a remembered answer covers, so that it covers none."""
    return grant.match is not None and _parsed(grant.match, approved=grant.approved) is None


def _parsed(match: Mapping[str, Any], *, approved: bool) -> Match | None:
    try:
        return _read(_text(match), approved)
    except (TypeError, ValueError, RecursionError):
        return None


@lru_cache(4_096)
def _read(text: str, approved: bool) -> Match | None:
    value = cast("dict[str, Any]", read(text))
    if value.keys() != _KEYS:
        return None
    try:
        [match] = read_matches(ConfigValue.top(document_of(value, file="<remembered>")), approved)
    except PolicyError:
        return None
    return match
