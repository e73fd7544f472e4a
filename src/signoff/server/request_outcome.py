"""What became of a request, in the keys of the pages' own words and in texts that are safe to show."""

from __future__ import annotations

from dataclasses import dataclass

from signoff.core.request import ApprovalRequest, State
from signoff.core.request_status import status_of
from signoff.core.safe_text import kept_text, safe_text
from signoff.core.visible_text import visible


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestOutcome:
    """What became of one request."""

    word: str
    """Its state, or `handed_over`: below `state.` in the texts."""
    sentence: str
    """Below `outcome.` in the texts. With `told_by`, it is what that person says."""
    by: str
    """Who decided; empty where nobody did, or where it is said by `by_rule`."""
    by_rule: bool
    """Whether a rule approved it because nobody answered."""
    told_by: str
    """Who said what became of the call, where its process could not."""
    why: str
    """Why it was cancelled; empty where that is not known."""
    note: str
    """What whoever decided noted, or else whoever said what became of the call."""
    result: str
    error: str


def outcome_of(request: ApprovalRequest) -> RequestOutcome:
    """What became of a request; of one that waits, how it stands."""
    status, secrets = status_of(request), request.secrets
    told_by = visible(status.told_by)
    word = "handed_over" if status.handed_over and request.state is not State.UNKNOWN else str(request.state)
    sentence = word
    if told_by:
        sentence = "happened" if request.state is State.SUCCEEDED else "did_not"
    elif request.state is State.EXPIRED and request.votes:
        sentence = "expired_few"
    is_void = request.state in (State.CANCELLED, State.EXPIRED)  # whoever approved it before did not end it
    cancelled = request.state is State.CANCELLED and not told_by
    return RequestOutcome(
        word=word,
        sentence=sentence,
        by=visible(str(status.by)) if status.by is not None and not status.by_rule and not is_void else "",
        by_rule=status.by_rule,
        told_by=told_by,
        why=safe_text(request.decision.note, secrets=secrets) if cancelled and request.decision is not None else "",
        note=safe_text(status.result if told_by else status.note, secrets=secrets),
        result="" if told_by else kept_text(status.result),
        error=kept_text(status.error),
    )
