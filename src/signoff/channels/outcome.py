"""Texts about the outcome of a call or a run, safe to show anywhere."""

from __future__ import annotations

from datetime import datetime

from signoff.core.notice import RunResult
from signoff.core.request import ApprovalRequest, State
from signoff.core.request_status import settled_text, status_of
from signoff.core.safe_text import kept_text, redacted_text, safe_text
from signoff.core.visible_text import visible

_ONLY_ANSWERED = (State.APPROVED, State.DENIED, State.CLAIMED)


def outcome_text(request: ApprovalRequest, *, answered: bool = False) -> str:
    """Return the outcome of a call. Empty for the person who `answered` while only their answer is known."""
    status = status_of(request)
    match status.state:
        case State.PENDING:
            return ""
        case _ if answered and (status.handed_over or status.state in _ONLY_ANSWERED):
            return ""
        case State.SUCCEEDED | State.FAILED if not status.handed_over:
            told = f"request {request.id} {'ran' if status.state is State.SUCCEEDED else 'failed'}"
            detail = status.result if status.state is State.SUCCEEDED else status.error
            return safe_text(told, secrets=request.secrets) + (f": {kept_text(detail)}" if detail else "")
        case State.UNKNOWN:
            text = f"request {request.id} was started, and its outcome is unknown: signoff show {request.id}"
            return visible(text)
        case _:
            return safe_text(settled_text(request, datetime.astimezone), secrets=request.secrets)


def step_text(request: ApprovalRequest) -> str:
    """Return a request's current step and who decided it, in a few words for a log."""
    return safe_text(status_of(request).step)


def result_text(result: RunResult) -> str:
    """Return the result of a run, or a line from one of its tools, as text."""
    return (
        visible(result.worker if result.line else f"{result.worker} ({result.state})")
        + f": {redacted_text(result.text, lines=True)}"
    )
