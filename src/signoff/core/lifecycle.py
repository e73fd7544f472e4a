"""The life of a request, as a table. `advance(request, event, now)` is the only way a request changes.

```
pending  --vote--> pending | approved | denied        approved --claim--> claimed --succeed--> succeeded
pending  --expire--> expired | pending (escalated,             --cancel-> cancelled --fail-> failed
                     parked) | approved (in words)                                  --lose-> unknown
                                                                                    --ask again-> cancelled
pending  --cancel--> cancelled
```
Whatever is not in the table is refused: a final state is never left, and nothing becomes approved
except through the votes its requirement asks for, or a rule that says `on_timeout: allow` in words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypeAlias

from signoff.core.canonical import digest
from signoff.core.decision import ApprovalDecision, Ending
from signoff.core.people import Answerer, AnswererKind
from signoff.core.quorum import approvals, why_not_entitled
from signoff.core.request import ApprovalRequest, State
from signoff.core.verdict import OnTimeout
from signoff.core.vote import Vote
from signoff.errors import AlreadySettled, AlreadySpent, NotEntitled, RequestError


@dataclass(frozen=True, slots=True)
class Voted:
    """Somebody answered."""

    by: Answerer
    decision: ApprovalDecision
    requester: str = ""
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Expired:
    """The deadline passed. Refused while it has not."""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The question is moot: the run ended, or something else replaced it."""

    reason: str


@dataclass(frozen=True, slots=True)
class Claimed:
    """The right to run is taken, before the tool runs."""


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The tool returned."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The tool raised."""

    error: str


@dataclass(frozen=True, slots=True)
class Lost:
    """Whoever claimed is gone without an outcome."""


@dataclass(frozen=True, slots=True)
class AskedAgain:
    """The tool did not work but asked for approval itself: the approval is used up, the call is open anew."""


Event: TypeAlias = Voted | Expired | Cancelled | Claimed | Succeeded | Failed | Lost | AskedAgain

FINAL = frozenset({State.DENIED, State.EXPIRED, State.CANCELLED, State.SUCCEEDED, State.FAILED, State.UNKNOWN})
SILENCE = Answerer(name="nobody in time", kind=AnswererKind.MODE)


def advance(request: ApprovalRequest, event: Event, now: datetime) -> ApprovalRequest:
    """The request after the event. Raises a `RequestError` where the table has no such step."""
    step = TABLE.get((request.state, type(event)))
    if step is None:
        raise _refusal(request, event)
    return step(request, event, now).changed_to(version=request.version + 1)


def settled_text(request: ApprovalRequest) -> str:
    """Who settled a request, when and how: what a late answer is told."""
    decision = request.decision
    if decision is None:
        return f"request {request.id} is {request.state}"
    when = f" at {decision.at:%Y-%m-%d %H:%M:%S}" if decision.at else ""
    note = f": {decision.note}" if decision.note else ""
    match decision.ending:
        case Ending.EXPIRED:
            return f"request {request.id} expired{when}{note}"
        case Ending.CANCELLED:
            return f"request {request.id} was cancelled{when}{note}"
        case ending:
            who = f" by {decision.by}" if decision.by else ""
            return f"request {request.id} was {ending}{who}{when}{note}"


def _refusal(request: ApprovalRequest, event: Event) -> RequestError:
    if isinstance(event, Claimed) and request.state in (State.CLAIMED, State.SUCCEEDED, State.FAILED, State.UNKNOWN):
        return AlreadySpent(f"request {request.id} was approved once and its call has been started already")
    if request.state is State.PENDING:
        return RequestError(f"request {request.id} is still waiting for an answer")
    return AlreadySettled(settled_text(request))


def _vote(request: ApprovalRequest, event: Event, now: datetime) -> ApprovalRequest:
    assert isinstance(event, Voted)
    if _is_due(request, now):
        raise AlreadySettled(f"request {request.id} ran out of time at {request.deadline:%Y-%m-%d %H:%M:%S}")
    if refusal := why_not_entitled(request.requirement, event.by, requester=event.requester, owner=event.owner):
        raise NotEntitled(refusal)
    decision = replace(event.decision, by=event.by, at=now)
    approved_args = request.args_digest if decision.edited_args is None else digest(decision.edited_args)
    vote = Vote(by=event.by, at=now, decision=decision, args_digest=approved_args)
    # One vote a person: a second thought replaces the first.
    votes = (*(earlier for earlier in request.votes if earlier.by.key != vote.by.key), vote)
    voted = request.changed_to(votes=votes)
    if not decision.approved:
        return voted.changed_to(state=State.DENIED, decision=replace(decision, ending=Ending.DENIED))
    agreed = approvals(request.requirement, votes, vote.args_digest, requester=event.requester, owner=event.owner)
    if len(agreed) >= request.requirement.quorum:
        return voted.changed_to(state=State.APPROVED, decision=decision)
    return voted


def _expire(request: ApprovalRequest, event: Event, now: datetime) -> ApprovalRequest:
    if not _is_due(request, now):
        raise RequestError(f"request {request.id} is not due yet")
    requirement = request.requirement
    if requirement.on_timeout is OnTimeout.PARK:
        return request.changed_to(deadline=None)
    if requirement.on_timeout is OnTimeout.ESCALATE and requirement.escalate_to and not request.escalated:
        later = now + requirement.timeout if requirement.timeout else None
        return request.changed_to(escalated=True, deadline=later)
    if requirement.on_timeout is OnTimeout.ALLOW:
        allowed = ApprovalDecision(approved=True, note="the rule allows it when nobody answers", by=SILENCE, at=now)
        return request.changed_to(state=State.APPROVED, decision=allowed)
    silence = ApprovalDecision(approved=False, note="nobody answered in time", ending=Ending.EXPIRED, at=now)
    return request.changed_to(state=State.EXPIRED, decision=silence)


def _cancel(request: ApprovalRequest, event: Event, now: datetime) -> ApprovalRequest:
    assert isinstance(event, Cancelled)
    by = request.decision.by if request.decision else None
    moot = ApprovalDecision(approved=False, note=event.reason, ending=Ending.CANCELLED, by=by, at=now)
    return request.changed_to(state=State.CANCELLED, decision=moot)


def _ask_again(request: ApprovalRequest, event: Event, now: datetime) -> ApprovalRequest:
    return _cancel(request, Cancelled("the tool asked again"), now)


def _to(state: State) -> Callable[[ApprovalRequest, Event, datetime], ApprovalRequest]:
    def step(request: ApprovalRequest, event: Event, now: datetime) -> ApprovalRequest:
        outcome = event.error if isinstance(event, Failed) else request.outcome
        return request.changed_to(state=state, outcome=outcome)

    return step


def _is_due(request: ApprovalRequest, now: datetime) -> bool:
    return request.deadline is not None and now >= request.deadline


TABLE: Mapping[tuple[State, type[Event]], Callable[[ApprovalRequest, Event, datetime], ApprovalRequest]] = {
    (State.PENDING, Voted): _vote,
    (State.PENDING, Expired): _expire,
    (State.PENDING, Cancelled): _cancel,
    (State.APPROVED, Cancelled): _cancel,
    (State.APPROVED, Claimed): _to(State.CLAIMED),
    (State.CLAIMED, Succeeded): _to(State.SUCCEEDED),
    (State.CLAIMED, Failed): _to(State.FAILED),
    (State.CLAIMED, Lost): _to(State.UNKNOWN),
    (State.CLAIMED, AskedAgain): _ask_again,
}
