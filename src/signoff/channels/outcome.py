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
        case State.SUCCEEDED if claim is not None:
            return safe_text(f"request {request.id} ran", secrets=request.secrets) + _detail(claim.preview)
        case State.FAILED if claim is not None:
            return safe_text(f"request {request.id} failed", secrets=request.secrets) + _detail(claim.error)
        case State.UNKNOWN:
            text = f"request {request.id} was started, and nobody knows whether it happened: signoff show {request.id}"
            return visible(text)
        case _:
            return safe_text(settled_text(request, datetime.astimezone), secrets=request.secrets)


def result_text(result: RunResult) -> str:
    """What a run came to, or a line of one of its tools."""
    return (
        visible(result.worker if result.line else f"{result.worker} ({result.state})")
        + f": {redacted_text(result.text, lines=True)}"
    )


def _detail(text: str) -> str:
    return f": {kept_text(text)}" if text else ""
