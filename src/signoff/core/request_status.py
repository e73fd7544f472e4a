"""The status of a request: as data, and in the words that every screen uses.

Nothing here is safe to show yet. Names, notes and results come from others: the caller must mask secrets and escape
hidden characters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from signoff.core.decision import ApprovalDecision, Ending, Remember
from signoff.core.moment import Zone, in_utc, moment_text
from signoff.core.people import Actor, ActorKind
from signoff.core.quorum import role_text
from signoff.core.request import ApprovalRequest, State
from signoff.core.verdict import OnTimeout
from signoff.core.visible_text import quoted

SILENCE = Actor(name="nobody in time", kind=ActorKind.MODE)
"""The actor of an approval by `on_timeout: allow`: nobody answered."""


class StatusWords(NamedTuple):
    """The words for a state."""

    title: str
    """The heading of a status."""
    step: str
    """The word in a log."""


STATUS_WORDS = {
    State.PENDING: StatusWords("it waits for an answer", "asked"),
    State.APPROVED: StatusWords("approved, and not run yet", "approved"),
    State.DENIED: StatusWords("denied", "denied"),
    State.EXPIRED: StatusWords("expired", "expired"),
    State.CANCELLED: StatusWords("cancelled", "cancelled"),
    State.CLAIMED: StatusWords("approved and started, without an outcome yet", "runs"),
    State.SUCCEEDED: StatusWords("it ran", "ran"),
    State.FAILED: StatusWords("it ran and failed", "ran and failed"),
    State.UNKNOWN: StatusWords("outcome unknown: its process died or stopped responding", "outcome unknown"),
}
_HANDED_OVER = "approved, and handed to the program that asked"


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestStatus:
    """The current status of a request."""

    state: State
    handed_over: bool = False
    """Whether a program has the approval and runs the call itself: the outcome is not known here."""
    by: Actor | None = None
    """Who decided; None if nobody did yet, or if it is not known."""
    stands_for: Actor | None = None
    """The absent person they decided for."""
    at: datetime | None = None
    """When it was decided."""
    by_rule: bool = False
    """Whether a rule approved it on timeout."""
    note: str = ""
    """The note of the person who decided; empty if signoff wrote the note."""
    edited: bool = False
    remembered: bool = False
    silence: str = ""
    """If it expired or was escalated: who did not answer."""
    deadline: datetime | None = None
    """The deadline."""
    then: str = ""
    """What happens on timeout."""
    escalated: bool = False
    assigned: str = ""
    started_at: datetime | None = None
    process: str = ""
    ended_at: datetime | None = None
    told_by: str = ""
    """The person who reported the outcome of the call; empty: its process did."""
    error: str = ""
    result: str = ""
    """What the call returned, or what that person noted."""

    @property
    def title(self) -> str:
        """The status in a few words."""
        title = _HANDED_OVER if self.handed_over else STATUS_WORDS[self.state].title
        return f"{title}: {self.silence}" if self.state is State.EXPIRED else title

    @property
    def step(self) -> str:
        """The last step, and who decided."""
        if self.handed_over:
            return f"approved{self.by_whom}, handed over"
        word = STATUS_WORDS[self.state].step
        return f"{word}{self.by_whom}" if self.state in (State.APPROVED, State.DENIED) else word

    @property
    def by_whom(self) -> str:
        """The actor, as a suffix: ` by ana`; empty if nobody is known."""
        if self.by_rule:
            return " by the rule"
        return f" by {self.by}" if self.by is not None else ""


def status_of(request: ApprovalRequest) -> RequestStatus:
    """The status of a request."""
    decision, claim, pending = request.decision, request.claim, request.state is State.PENDING
    last = request.votes[-1] if request.votes else None
    by = decision.by if decision is not None else None
    voted = last is not None and by is not None and last.by.key == by.key
    return RequestStatus(
        state=request.state,
        handed_over=claim is not None and claim.handed_over,
        by=by,
        stands_for=last.stands_for if last is not None and voted else None,
        at=settled_at(request),
        by_rule=decision is not None and is_silence(decision),
        note=decision.note if decision is not None and not _is_ours(decision) else "",
        edited=decision is not None and decision.edited_args is not None,
        remembered=decision is not None and decision.remember is not Remember.NONE,
        silence=request.silence if request.state is State.EXPIRED or (pending and request.escalated) else "",
        deadline=request.deadline if pending else None,
        then=without_answer(request) if pending and request.deadline is not None else "",
        escalated=request.escalated,
        assigned=request.assigned,
        started_at=claim.at if claim is not None else None,
        process=claim.holder if claim is not None else "",
        ended_at=claim.ended_at if claim is not None else None,
        told_by=claim.told_by if claim is not None else "",
        error=claim.error if claim is not None else "",
        result=claim.preview if claim is not None else "",
    )


def without_answer(request: ApprovalRequest, named: Callable[[str], str] = role_text) -> str:
    """What happens on timeout. `named` formats the name of a role."""
    requirement = request.requirement
    match requirement.on_timeout:
        case OnTimeout.ALLOW:
            return "it runs"
        case OnTimeout.PARK:
            return "it stays open"
        case OnTimeout.ESCALATE if requirement.escalate_to and not request.escalated:
            return f"the role {named(requirement.escalate_to)} is asked"
        case _:
            return "it is denied"


def settled_at(request: ApprovalRequest) -> datetime | None:
    """When it was settled; None if that is not known."""
    return request.decision.at if request.decision is not None else None


def settled_text(request: ApprovalRequest, zone: Zone = in_utc) -> str:
    """Who settled a request, when and how: the reply to a late answer."""
    decision = request.decision
    if decision is None:
        return f"request {request.id} is {request.state}"
    when = f" at {moment_text(decision.at, zone)}" if decision.at else ""
    note = f": {_own_words(decision)}" if decision.note else ""
    match decision.ending:
        case Ending.EXPIRED:
            return f"request {request.id} expired{when}{note}"
        case Ending.CANCELLED:
            return f"request {request.id} was cancelled{when}{note}"
        case ending:
            who = f" by {decision.by}" if decision.by else ""
            return f"request {request.id} was {ending}{who}{when}{note}"


def approval_text(request: ApprovalRequest, zone: Zone = in_utc) -> str:
    """Who approved it, when, and what they noted: `ana approved it (2031-05-24 18:00:00 UTC, note “fine”)`."""
    decision = request.decision
    if decision is None:
        return "it was approved"
    when = moment_text(decision.at, zone) if decision.at else ""
    if is_silence(decision):
        return f"the rule approved it because nobody answered{f' ({when})' if when else ''}"
    details = ", ".join(filter(None, (when, f"note {quoted(decision.note)}" if decision.note else "")))
    return f"{decision.by or 'somebody'} approved it" + (f" ({details})" if details else "")


def is_silence(decision: ApprovalDecision) -> bool:
    """Whether a rule approved it on timeout."""
    return decision.approved and decision.by == SILENCE


def _own_words(decision: ApprovalDecision) -> str:
    """The note of a decision in a sentence: a person's note is quoted, signoff's own is not."""
    return decision.note if _is_ours(decision) else quoted(decision.note)


def _is_ours(decision: ApprovalDecision) -> bool:
    """Whether signoff wrote the note of a decision, not a person who answered."""
    return decision.by == SILENCE or decision.ending in (Ending.EXPIRED, Ending.CANCELLED)
