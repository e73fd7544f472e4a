"""What became of a call or a run, in words that are safe to show anywhere."""

from __future__ import annotations

from datetime import datetime

from signoff.core.lifecycle import settled_text
from signoff.core.notice import RunResult
from signoff.core.request import ApprovalRequest, State
from signoff.core.safe import kept_text, redacted_text, safe_text
from signoff.core.visible import visible


def outcome_text(request: ApprovalRequest, *, answered: bool = False) -> str:
    """What became of a call; nothing to whoever `answered` while all that is known is their answer."""
    claim = request.claim
    match request.state:
        case State.PENDING | State.CLAIMED:
            return ""
        case State.APPROVED | State.DENIED if answered:
            return ""
        case State.SUCCEEDED if claim is not None and claim.handed_over:
            return "" if answered else safe_text(settled_text(request, datetime.astimezone), secrets=request.secrets)
        case State.SUCCEEDED if claim is not None:
            return safe_text(f"request {request.id} ran", secrets=request.secrets) + _detail(claim.preview)
        case State.FAILED if claim is not None:
            return safe_text(f"request {request.id} failed", secrets=request.secrets) + _detail(claim.error)
        case State.UNKNOWN:
            text = f"request {request.id} was started, and nobody knows whether it happened: signoff show {request.id}"
            return visible(text)
        case _:
            return safe_text(settled_text(request, datetime.astimezone), secrets=request.secrets)


def step_text(request: ApprovalRequest) -> str:
    """How far a request came, and by whose word, in a few words for a log."""
    decision, claim = request.decision, request.claim
    who = f" by {safe_text(str(decision.by))}" if decision is not None and decision.by is not None else ""
    match request.state:
        case State.PENDING:
            return "asked"
        case State.APPROVED:
            return f"approved{who}"
        case State.DENIED:
            return f"denied{who}"
        case State.CLAIMED:
            return "runs"
        case State.SUCCEEDED if claim is not None and claim.handed_over:
            return f"approved{who}, handed over"
        case State.SUCCEEDED:
            return "ran"
        case State.FAILED:
            return "ran and failed"
        case State.UNKNOWN:
            return "outcome unknown"
        case _:
            return str(request.state)


def result_text(result: RunResult) -> str:
    """What a run came to, or a line of one of its tools."""
    return (
        visible(result.worker if result.line else f"{result.worker} ({result.state})")
        + f": {redacted_text(result.text, lines=True)}"
    )


def _detail(text: str) -> str:
    return f": {kept_text(text)}" if text else ""
