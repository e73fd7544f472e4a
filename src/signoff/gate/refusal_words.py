"""Who refused a call, and why, in words."""

from __future__ import annotations

from signoff.core.decision import ApprovalDecision, Ending
from signoff.core.people import ActorKind

POLICY = "policy"
SIGNOFF = "signoff"
TOOL = "tool"
"""The tool itself refused, by a `PermissionError`."""
SOMEBODY = str(ActorKind.PERSON)
"""A person whose name is not known."""


def decided_by(decision: ApprovalDecision) -> str:
    """Return who denied the call, as the payload names them."""
    if decision.ending is Ending.EXPIRED:
        return "timeout"
    if decision.by is None:
        return SIGNOFF if decision.ending is Ending.CANCELLED else SOMEBODY
    return decision.by.name if decision.by.kind is ActorKind.PERSON else str(decision.by.kind)


def decided_why(decision: ApprovalDecision) -> str:
    """Return the reason: the note of the decision, or a standard text."""
    if decision.note:
        return decision.note
    match decision.ending:
        case Ending.EXPIRED:
            return "nobody answered in time"
        case Ending.CANCELLED:
            return "the request was withdrawn"
        case _ if decision.by is None or decision.by.kind is ActorKind.PERSON:
            return "a person looked at this call and said no"
        case _:
            return "the answer was no"
