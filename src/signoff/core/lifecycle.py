"""The state machine of a request, as a transition table.

`advance(request, event, now)` is the only function that changes the state of a request.

```
pending  --vote--> pending | approved | denied        approved --claim--> claimed --succeed--> succeeded
pending  --expire--> expired | pending (escalated,             --cancel-> cancelled --fail-> failed
                     parked) | approved (`allow`)                                   --lose-> unknown
pending  --assign, remind, date, comment--> pending                                 --ask again-> cancelled
pending  --cancel--> cancelled
                                         pending, approved --await--> the same (another process waits for it)
                                                      claimed --enter--> claimed (it only waits for inner runs)
                                                      claimed --pause--> approved (claimed again with its inner runs)
                                                      claimed --return--> approved (stopped before the call began)
                                                      approved --hand over--> succeeded (a program runs it itself)
                                                      unknown --succeed, fail--> succeeded, failed (late outcome)
                                                      unknown --report--> succeeded | cancelled (a person knows)
                                                      unknown --comment--> unknown
```
Every other transition is refused. A final state never changes. A request is approved only by the votes that its
requirement asks for, or on timeout by a rule with an explicit `on_timeout: allow`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from signoff.core.canonical import digest
from signoff.core.claim import Claim
from signoff.core.decision import ApprovalDecision, Ending
from signoff.core.moment import moment_text
from signoff.core.people import Actor, ActorKind, person_key
from signoff.core.quorum import approvals, entitled_as
from signoff.core.request import ApprovalRequest, State
from signoff.core.request_status import SILENCE, settled_at, settled_text
from signoff.core.verdict import OnTimeout, Requirement
from signoff.core.visible_text import quoted
from signoff.core.vote import Vote
from signoff.errors import AlreadySettled, AlreadySpent, NotEntitled, RequestError


@dataclass(frozen=True, slots=True)
class Voted:
    """A person or program answered, in their own name or as the deputy of somebody absent."""

    by: Actor
    decision: ApprovalDecision
    absent: tuple[Actor, ...] = ()
    """The absent people that the actor is a deputy of."""


@dataclass(frozen=True, slots=True)
class Expired:
    """The deadline passed. Refused before the deadline."""


@dataclass(frozen=True, slots=True)
class Reminded:
    """People were reminded that the deadline is near."""


@dataclass(frozen=True, slots=True)
class Dated:
    """A channel with a timeout showed the request. Refused if its rule has a timeout, or does not deny on timeout."""

    deadline: datetime


@dataclass(frozen=True, slots=True)
class Assigned:
    """Somebody took the request, to work on the answer. An empty name releases it."""

    to: str


@dataclass(frozen=True, slots=True)
class Awaited:
    """Another process waits for the answer from now on, and makes the call."""

    waiter: str


@dataclass(frozen=True, slots=True)
class Commented:
    """Somebody added a note, a question or a reply. It decides nothing."""


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The request is no longer needed: the run ended, or something else replaced it."""

    reason: str


@dataclass(frozen=True, slots=True)
class Claimed:
    """The approval is used (claimed), before the tool runs."""

    holder: str = ""
    token: str = ""


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The tool returned."""

    digest: str = ""
    preview: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """The tool raised."""

    error: str


@dataclass(frozen=True, slots=True)
class Lost:
    """The process that holds the claim is gone, without an outcome."""


@dataclass(frozen=True, slots=True)
class AskedAgain:
    """The tool itself asked for approval while it ran: the approval is used up, and the call needs a new one."""

    reason: str = "the tool asked again"


@dataclass(frozen=True, slots=True)
class Entered:
    """From now until it ends, a claimed call only waits for inner runs. Those are saved."""


@dataclass(frozen=True, slots=True)
class Paused:
    """A claimed call was suspended together with its inner run. The process that resumes the run claims it again."""


@dataclass(frozen=True, slots=True)
class Returned:
    """The holder of the claim was stopped before the call began: the approval is valid again."""


@dataclass(frozen=True, slots=True)
class HandedOver:
    """A program that runs the call itself uses the approval. It reports no outcome."""

    holder: str = ""


@dataclass(frozen=True, slots=True)
class OutcomeReported:
    """A person reports the outcome of a call whose process is gone."""

    by: Actor
    happened: bool
    note: str = ""
    absent: tuple[Actor, ...] = ()


Event: TypeAlias = (
    Voted
    | Expired
    | Reminded
    | Dated
    | Assigned
    | Awaited
    | Commented
    | Cancelled
    | Claimed
    | Entered
    | Paused
    | Returned
    | Succeeded
    | Failed
    | Lost
    | AskedAgain
    | HandedOver
    | OutcomeReported
)

FINAL = frozenset({State.DENIED, State.EXPIRED, State.CANCELLED, State.SUCCEEDED, State.FAILED})
OPEN = frozenset({State.PENDING, State.UNKNOWN})
"""A person has to act: decide whether the call may run, or report whether it ran."""
SPENT = frozenset({State.CLAIMED, State.SUCCEEDED, State.FAILED, State.UNKNOWN})
"""The approval was used, with whatever outcome."""


def advance(request: ApprovalRequest, event: Event, now: datetime) -> ApprovalRequest:
    """Return the request after the event. Raises a `RequestError` if the table has no such transition."""
    step = TABLE.get((request.state, type(event)))
    if step is None:
        raise _refusal(request, event)
    return step(request, event, now).changed_to(version=request.version + 1)


def _refusal(request: ApprovalRequest, event: Event) -> RequestError:
    if isinstance(event, Claimed | HandedOver) and request.state in SPENT:
        return AlreadySpent(f"request {request.id} was approved once, and its call has already started")
    if request.state is State.PENDING:
        return RequestError(f"request {request.id} is still waiting for an answer")
    if request.state is State.UNKNOWN and isinstance(event, Voted):
        text = f"{settled_text(request)}, its call was started, and its outcome is unknown"
        return AlreadySettled(text).with_moment(settled_at(request))
    return AlreadySettled(settled_text(request)).with_moment(settled_at(request))


def _vote(request: ApprovalRequest, event: Event, now: datetime) -> ApprovalRequest:
    assert isinstance(event, Voted)
    if request.deadline is not None and _is_due(request, now):
        late = AlreadySettled(f"request {request.id} expired at {moment_text(request.deadline)}")
        raise late.with_moment(request.deadline)
    decision = event.decision.changed(by=event.by, at=now)
    stands_for, refusal = _entitled(request, event.by, event.absent, denies=not decision.approved)
    if refusal:
        raise NotEntitled(refusal)
    mine = (event.by.key, stands_for.key if stands_for else event.by.key)
    # An assignment keeps others from approving. It keeps nobody from denying.
    if decision.approved and request.assigned and person_key(request.assigned) not in mine:
        raise NotEntitled(
            f"{request.assigned} is working on request {request.id}; take it over first, on its page or with "
            f"signoff take {request.id}"
        )
    approved_args = request.args_digest if decision.edited_args is None else digest(decision.edited_args)
    vote = Vote(by=event.by, at=now, decision=decision, args_digest=approved_args, stands_for=stands_for)
    # One vote per person: a later vote replaces the earlier one.
    votes = (*(earlier for earlier in request.votes if earlier.by.key != vote.by.key), vote)
    voted = request.changed_to(votes=votes, assigned="")
    if not decision.approved:
        return voted.changed_to(state=State.DENIED, decision=decision.changed(ending=Ending.DENIED))
    agreed = approvals(request.requirement, votes, vote.args_digest, request.parties)
    if len(agreed) >= request.requirement.quorum:
        return voted.changed_to(state=State.APPROVED, decision=decision)
    return voted


def _entitled(
    request: ApprovalRequest, by: Actor, absent: tuple[Actor, ...], *, denies: bool
) -> tuple[Actor | None, str]:
    return entitled_as(request.requirement, by, absent, request.parties, denies=denies)


def _expire(request: ApprovalRequest, event: Event, now: datetime) -> ApprovalRequest:
    if not _is_due(request, now):
        raise RequestError(f"request {request.id} is not due yet")
    requirement = request.requirement
    if requirement.on_timeout is OnTimeout.PARK:
        return request.changed_to(deadline=None, remind_at=None)
    if requirement.on_timeout is OnTimeout.ESCALATE and requirement.escalate_to and not request.escalated:
        later = now + requirement.timeout if requirement.timeout else None
        return request.changed_to(escalated=True, deadline=later, remind_at=remind_at(requirement, later), assigned="")
    if requirement.on_timeout is OnTimeout.ALLOW:
        allowed = ApprovalDecision(approved=True, note="the rule allows it when nobody answers", by=SILENCE, at=now)
        return request.changed_to(state=State.APPROVED, decision=allowed)
    silence = ApprovalDecision(approved=False, note=request.silence, ending=Ending.EXPIRED, at=now)
    return request.changed_to(state=State.EXPIRED, decision=silence)


def _cancel(request: ApprovalRequest, event: Event, now: datetime) -> ApprovalRequest:
    assert isinstance(event, Cancelled)
    moot = ApprovalDecision(approved=False, note=event.reason, ending=Ending.CANCELLED, at=now)
    return request.changed_to(state=State.CANCELLED, decision=moot)


def _ask_again(request: ApprovalRequest, event: Event, now: datetime) -> ApprovalRequest:
    assert isinstance(event, AskedAgain)
    return _cancel(request, Cancelled(event.reason), now)


def _remind(request: ApprovalRequest, event: Event, now: datetime) -> ApprovalRequest:
    if request.remind_at is None or now < request.remind_at:
        raise RequestError(f"request {request.id} needs no reminder yet")
    return request.changed_to(remind_at=None)


def _date(request: ApprovalRequest, event: Event, now: datetime) -> ApprovalRequest:
    assert isinstance(event, Dated)
    if not may_be_dated(request):
        raise RequestError(f"how long request {request.id} waits was settled before")
    return request.changed_to(deadline=event.deadline, remind_at=remind_at(request.requirement, event.deadline))


def _assign(request: ApprovalRequest, event: Event, now: datetime) -> ApprovalRequest:
    assert isinstance(event, Assigned)
    return request.changed_to(assigned=event.to)


def _await(request: ApprovalRequest, event: Event, now: datetime) -> ApprovalRequest:
    assert isinstance(event, Awaited)
    return request.changed_to(waiter=event.waiter)


def _comment(request: ApprovalRequest, event: Event, now: datetime) -> ApprovalRequest:
    return request


def _claim(request: ApprovalRequest, event: Event, now: datetime) -> ApprovalRequest:
    assert isinstance(event, Claimed)
    return request.changed_to(state=State.CLAIMED, claim=Claim(holder=event.holder, at=now, token=event.token))


def _hand_over(request: ApprovalRequest, event: Event, now: datetime) -> ApprovalRequest:
    assert isinstance(event, HandedOver)
    claim = Claim(holder=event.holder, at=now, ended_at=now, handed_over=True)
    return request.changed_to(state=State.SUCCEEDED, claim=claim)


def _succeed(request: ApprovalRequest, event: Event, now: datetime) -> ApprovalRequest:
    assert isinstance(event, Succeeded)
    claim = _claim_of(request).changed(ended_at=now, digest=event.digest, preview=event.preview)
    return request.changed_to(state=State.SUCCEEDED, claim=claim)


def _fail(request: ApprovalRequest, event: Event, now: datetime) -> ApprovalRequest:
    assert isinstance(event, Failed)
    return request.changed_to(state=State.FAILED, claim=_claim_of(request).changed(ended_at=now, error=event.error))


def _lose(request: ApprovalRequest, event: Event, now: datetime) -> ApprovalRequest:
    return request.changed_to(state=State.UNKNOWN)


def _enter(request: ApprovalRequest, event: Event, now: datetime) -> ApprovalRequest:
    return request.changed_to(claim=_claim_of(request).changed(inside=True))


def _pause(request: ApprovalRequest, event: Event, now: datetime) -> ApprovalRequest:
    if not _claim_of(request).inside:
        raise RequestError(f"request {request.id} was claimed, and nothing inside its call waits")
    return request.changed_to(state=State.APPROVED)


def _return(request: ApprovalRequest, event: Event, now: datetime) -> ApprovalRequest:
    return request.changed_to(state=State.APPROVED)


def _tell(request: ApprovalRequest, event: Event, now: datetime) -> ApprovalRequest:
    assert isinstance(event, OutcomeReported)
    _, refusal = _entitled(request, event.by, event.absent, denies=False)
    if refusal:
        raise NotEntitled(refusal)
    if event.by.kind is not ActorKind.PERSON:
        raise NotEntitled(f"{event.by.name} is not a person; only a person can report the outcome of the call")
    claim = _claim_of(request).changed(ended_at=now, told_by=event.by.name, preview=event.note)
    if event.happened:
        return request.changed_to(state=State.SUCCEEDED, claim=claim)
    note = f"{event.by.name} says that it did not happen" + (f": {quoted(event.note)}" if event.note else "")
    return _cancel(request.changed_to(claim=claim), Cancelled(note), now)


def _claim_of(request: ApprovalRequest) -> Claim:
    assert request.claim is not None, "a claimed request has a claim"
    return request.claim


def may_be_dated(request: ApprovalRequest) -> bool:
    """Whether a channel may set the deadline: the request is pending, has no timeout, and would be denied on timeout.

    A channel's timeout never loosens a rule. If the rule approves, parks or escalates on timeout, only it sets the
    deadline.
    """
    waits = request.state is State.PENDING and not request.escalated
    open_ended = request.deadline is None and request.requirement.timeout is None
    return waits and open_ended and request.requirement.on_timeout is OnTimeout.DENY


def remind_at(requirement: Requirement, deadline: datetime | None) -> datetime | None:
    """When to remind people of a request with this deadline. None without a deadline or a `remind` time."""
    return deadline - requirement.remind if deadline is not None and requirement.remind is not None else None


def _is_due(request: ApprovalRequest, now: datetime) -> bool:
    return request.deadline is not None and now >= request.deadline


TABLE: Mapping[tuple[State, type[Event]], Callable[[ApprovalRequest, Event, datetime], ApprovalRequest]] = {
    (State.PENDING, Voted): _vote,
    (State.PENDING, Expired): _expire,
    (State.PENDING, Reminded): _remind,
    (State.PENDING, Dated): _date,
    (State.PENDING, Assigned): _assign,
    (State.PENDING, Awaited): _await,
    (State.PENDING, Commented): _comment,
    (State.PENDING, Cancelled): _cancel,
    (State.APPROVED, Cancelled): _cancel,
    (State.APPROVED, Awaited): _await,
    (State.APPROVED, Claimed): _claim,
    (State.APPROVED, HandedOver): _hand_over,
    (State.CLAIMED, Succeeded): _succeed,
    (State.CLAIMED, Failed): _fail,
    (State.CLAIMED, Lost): _lose,
    (State.CLAIMED, Entered): _enter,
    (State.CLAIMED, Paused): _pause,
    (State.CLAIMED, Returned): _return,
    (State.CLAIMED, AskedAgain): _ask_again,
    (State.UNKNOWN, Succeeded): _succeed,
    (State.UNKNOWN, Failed): _fail,
    (State.UNKNOWN, OutcomeReported): _tell,
    (State.UNKNOWN, Commented): _comment,
}
