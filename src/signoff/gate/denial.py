"""How a refusal reaches the model, or the caller: one payload, whoever refused."""

from __future__ import annotations

import json

from pydantic_ai.tools import ToolDenied

from signoff.core.decision import ApprovalDecision, Ending
from signoff.core.people import ActorKind
from signoff.errors import ApprovalBlocked, ApprovalDenied, ApprovalError

POLICY = "policy"
SIGNOFF = "signoff"
TOOL = "tool"
"""The tool itself refused, by a `PermissionError`."""
SOMEBODY = str(ActorKind.PERSON)
"""A person whose name nobody told."""


def denial(tool: str, *, by: str, reason: str) -> ToolDenied:
    """The refusal as the model sees it: JSON with a permission error, the same for policy and person."""
    payload = {"error": "permission_denied", "tool": tool, "by": by, "reason": reason, "retryable": False}
    return ToolDenied(json.dumps(payload, ensure_ascii=False))


def refusal(tool: str, *, by: str, reason: str) -> ApprovalError:
    """The same refusal as an exception, for callers who asked for one."""
    kind = ApprovalBlocked if by == POLICY else ApprovalDenied
    return kind(f"{tool} was refused by {by}: {reason}", tool=tool, by=by)


def decided_by(decision: ApprovalDecision) -> str:
    """Who said no, as the payload names them."""
    if decision.ending is Ending.EXPIRED:
        return "timeout"
    if decision.by is None:
        return SIGNOFF if decision.ending is Ending.CANCELLED else SOMEBODY
    return decision.by.name if decision.by.kind is ActorKind.PERSON else str(decision.by.kind)


def decided_why(decision: ApprovalDecision) -> str:
    """Why, in the words of whoever decided."""
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
