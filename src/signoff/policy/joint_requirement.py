"""Combine requirements: who must agree if more than one rule asks about the same call."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from functools import reduce

from signoff.core.verdict import OnTimeout, Requirement


def together(requirements: Iterable[Requirement]) -> Requirement:
    """Return a requirement that is met only if all of them are, as far as one requirement can express that.

    Uses the larger quorum, all exclusions, the shorter timeout and the first message. Of two different roles it uses
    the first: outer layers come first. A timeout allows the call only if every requirement says so.
    """
    return reduce(_both, requirements)


def _both(one: Requirement, other: Requirement) -> Requirement:
    if one == other:
        return one
    sooner = min(one, other, key=lambda requirement: requirement.timeout or timedelta.max)
    allows = one.on_timeout is other.on_timeout is OnTimeout.ALLOW
    return Requirement(
        role=one.role or other.role,
        quorum=max(one.quorum, other.quorum),
        not_by=one.not_by | other.not_by,
        timeout=sooner.timeout,
        on_timeout=OnTimeout.DENY if sooner.on_timeout is OnTimeout.ALLOW and not allows else sooner.on_timeout,
        escalate_to=sooner.escalate_to,
        escalate_quorum=max(one.escalate_quorum, other.escalate_quorum),
        veto=one.veto or other.veto,
        remind=sooner.remind,
        message=one.message or other.message,
        irreversible=one.irreversible or other.irreversible,
    )
