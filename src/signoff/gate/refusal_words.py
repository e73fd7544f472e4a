"""Who refused a call, and why, in words."""

from __future__ import annotations

from signoff.core.decision import ApprovalDecision, Ending
from signoff.core.people import UNNAMED, ActorKind

POLICY = "policy"
SIGNOFF = "signoff"
TOOL = "tool"
"""The tool itself refused, by a `PermissionError`."""


def decided_by(decision: ApprovalDecision) -> str:
    """Return who denied the call, as the payload names them."""
    if decision.ending is Ending.EXPIRED:
        return "timeout"
    if decision.by is None and decision.ending is Ending.CANCELLED:
        return SIGNOFF
    return (decision.by or UNNAMED).known_as


def decided_why(decision: ApprovalDecision) -> str:
    """Return the reason: the note of the decision, or a standard text."""
    if decision.note:
        return decision.note
    match decision.ending:
        case Ending.EXPIRED:
            return "nobody answered in time"
        case Ending.CANCELLED:
            return "the request was withdrawn"
        case _ if decision.by is not None and decision.by.kind is ActorKind.PERSON:
            return "a person said no, and gave no reason"
        case _:
            return "the answer was no"


def words_of(error: PermissionError) -> str:
    """Return why a tool refused, by the error that it raised."""
    return str(error) or "the tool refused"
