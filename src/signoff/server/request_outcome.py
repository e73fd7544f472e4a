"""The outcome of a request, as keys of `page_words` and as texts that are safe to show."""

from __future__ import annotations

from dataclasses import dataclass

from signoff.core.quorum import approvers
from signoff.core.request import ApprovalRequest, State
from signoff.core.request_status import status_of
from signoff.core.safe_text import kept_text, safe_text
from signoff.core.visible_text import visible


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOutcome:
    """The outcome of one request."""

    word: str
    """Its state, or `handed_over`: key of `page_words.STATES`."""
    sentence: str
    """Key of `page_words.OUTCOMES`. With `told_by`, it is what that person reported."""
    by: str
    """Who decided, all who had to; empty if nobody did, or if `by_rule` says it."""
    by_rule: bool
    """Whether a rule approved it because nobody answered."""
    told_by: str
    """Who reported the outcome of the call, if its process could not."""
    why: str
    """Why it was cancelled; empty if that is not known."""
    note: str
    """With `told_by`, the note of that person; else the note of who decided."""
    result: str
    error: str


def outcome_of(request: ApprovalRequest) -> RequestOutcome:
    """Return the outcome of a request; for a pending one, its status."""
    status, secrets = status_of(request), request.secrets
    told_by = visible(status.told_by)
    word = "handed_over" if status.handed_over and request.state is not State.UNKNOWN else str(request.state)
    sentence = word
    if told_by:
        sentence = "happened" if request.state is State.SUCCEEDED else "did_not"
    elif request.state is State.EXPIRED and request.votes:
        sentence = "expired_few"
    is_void = request.state in (State.CANCELLED, State.EXPIRED)  # an earlier approver did not end it
    cancelled = request.state is State.CANCELLED and not told_by
    by = visible(str(status.by)) if status.by is not None and not status.by_rule and not is_void else ""
    if by and request.decision is not None and request.decision.approved and request.requirement.quorum > 1:
        counted = approvers(request.requirement, request.votes, request.args_digest, request.parties)
        by = ", ".join(sorted(map(visible, counted.values()))) or by
    return RequestOutcome(
        word=word,
        sentence=sentence,
        by=by,
        by_rule=status.by_rule,
        told_by=told_by,
        why=safe_text(request.decision.note, secrets=secrets) if cancelled and request.decision is not None else "",
        note=safe_text(status.result if told_by else status.note, secrets=secrets),
        result="" if told_by else kept_text(status.result, lines=True),
        error=kept_text(status.error, lines=True),
    )
