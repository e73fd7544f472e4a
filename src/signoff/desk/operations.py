"""One rule book for everything that people do. Faces parse what somebody says, call this, and print what came of it.

What the store decides (who may answer, who was first, how many are needed) is in the broker, in one transaction with
the answer. Here is the rest: nobody approves what they were not shown, a program does not approve for people, and what
lets more run (deputies, a lifted halt, a revoked denial) is done by those it concerns or by an admin.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

from signoff.broker import Broker
from signoff.broker.readers import has_read
from signoff.core.card import has_long_card
from signoff.core.comment import Comment, CommentKind
from signoff.core.decision import ApprovalDecision, Remember
from signoff.core.grant import Grant
from signoff.core.people import Actor, ActorKind, Delegation, person_key
from signoff.core.request import ApprovalRequest, State
from signoff.core.terms import Budget, Scope, Terms
from signoff.core.visible_text import quoted, visible
from signoff.delivery.channel_inbox import StoreInbox
from signoff.errors import CannotCanonicalise, EditRefused, NotEntitled, NotRead, RequestError
from signoff.policy.offer import offer_called, offers

CheckEdit: TypeAlias = Callable[[ApprovalRequest, ApprovalDecision], Awaitable[ApprovalDecision]]
"""Returns a decision with the complete arguments to run. Raises `EditRefused` if they cannot be used."""
Submit: TypeAlias = Callable[[ApprovalRequest, ApprovalDecision, Actor], Awaitable[ApprovalRequest]]
Described: TypeAlias = Callable[[ApprovalRequest, Mapping[str, Any]], ApprovalRequest | None]
NOT_REMEMBERED = (
    "cannot be remembered: its rule requires several people or excludes somebody, it is in doubt, or nothing is "
    "remembered here"
)


class Acting(NamedTuple):
    """Who does something, and whether they may do it for others, too."""

    by: Actor
    is_admin: bool = False


# --- answers ---


def nobody_knows(request: ApprovalRequest, args: Mapping[str, Any]) -> None:
    """Return None: what edited arguments would change is not known here."""


@dataclass(frozen=True, slots=True)
class Answers:
    """Takes answers to requests: approve, deny, other arguments, remember."""

    broker: Broker
    edits: CheckEdit
    """Checks other arguments against the tool's schema and the policy that the call was asked under."""
    submit: Submit | None = None
    """Stores an answer that was checked; by default the broker does."""
    with_edit: Described = nobody_knows
    """Returns a request as it would be asked with edited arguments; None if that is not known here. It may block."""

    async def checked(self, request: ApprovalRequest, decision: ApprovalDecision, by: Actor) -> ApprovalDecision:
        """Return an answer as it may be stored. Raises a `RequestError` if it may not.

        A late answer is returned as it is: whoever gave it is told that it is late, not what is wrong with it.
        """
        if request.state is not State.PENDING:
            return decision
        if decision.edited_args is not None and decision.remember is not Remember.NONE:
            raise RequestError("edited arguments are approved once and cannot be remembered")
        if decision.approved:
            refuse_unseen(request)
            await self._refuse_unread(request, decision, by)
        remembers = decision.remember is not Remember.NONE
        refuse_program(self.broker, request, by, approves=decision.approved, remembers=remembers)
        return await self.edits(request, decision) if decision.edited_args is not None else decision

    async def take(self, request: ApprovalRequest, decision: ApprovalDecision, by: Actor) -> ApprovalRequest:
        """Check an answer and store it."""
        checked = await self.checked(request, decision, by)
        if self.submit is not None:
            return await self.submit(request, checked, by)
        return await self.broker.answer(request.id, checked, by=by)

    async def preview(self, request: ApprovalRequest, decision: ApprovalDecision) -> ApprovalDecision:
        """Check other arguments as `checked` does, for somebody who is still writing them."""
        refuse_unseen(request)
        return await self.edits(request, decision)

    def inbox(self, channel: str) -> StoreInbox:
        """Return the inbox of a channel that answers by these rules."""
        return StoreInbox(self.broker, channel, self.take, check=self.preview, with_edit=self.with_edit)

    async def _refuse_unread(self, request: ApprovalRequest, decision: ApprovalDecision, by: Actor) -> None:
        """Raise if a call is long, and the approver has not been shown all of it."""
        args = decision.edited_args
        if args is not None and any(vote.decision.edited_args == args for vote in request.votes):
            request = request.changed_to(decision=decision)  # what somebody else wrote has to be read, too
        if has_long_card(request) and not await has_read(self.broker.ledger, request.id, by):
            raise NotRead("this call is long: read all of it before you approve it")


def refuse_program(broker: Broker, request: ApprovalRequest, by: Actor, *, approves: bool, remembers: bool) -> None:
    """Raise if a program would approve for a person. It may deny; it may approve only if no people are listed."""
    if by.kind is ActorKind.PERSON or not (approves or remembers):
        return
    name = visible(by.name)
    if broker.people.are_listed:
        raise NotEntitled(f"{name} is a program: it may deny and comment; only people may approve and remember answers")
    if approves and request.requester and person_key(request.requester) == by.key:
        raise NotEntitled(f"{name} is a program, and cannot approve calls of its own run")


def refuse_unseen(request: ApprovalRequest) -> None:
    """Raise `EditRefused` for a call that cannot be shown completely."""
    if request.call is not None and request.call.unreadable:
        raise EditRefused(
            tuple(f"{visible(one)} cannot be shown, so the call cannot be approved" for one in request.call.unreadable)
        )
    try:
        has_long_card(request)  # raises like the card
    except CannotCanonicalise as error:
        raise EditRefused((f"the call cannot be shown, so it cannot be approved: {visible(str(error))}",)) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembering:
    """How somebody wants an answer remembered for later calls."""

    which: str = "exact"
    """The number of an offer, counted from 1, or its name."""
    scope: Scope = Scope.PROJECT
    until: datetime | None = None
    uses: int | None = None
    budget: Budget | None = None


def terms_of(broker: Broker, request: ApprovalRequest, wanted: Remembering, by: Actor) -> Terms:
    """Return the terms of a grant. Raises `RequestError` if the request does not offer them, or not to a program."""
    refuse_program(broker, request, by, approves=False, remembers=True)
    offer = offer_called(request, wanted.which)
    if offer is None:
        if offered := offers(request):
            raise not_offered(request.id, wanted.which, [one.name for one in offered])
        raise RequestError(f"the answer to request {request.id} {NOT_REMEMBERED}")
    return Terms(scope=wanted.scope, match=offer.match, until=wanted.until, max_uses=wanted.uses, budget=wanted.budget)


def not_offered(request_id: str, which: str, offered: Sequence[str]) -> RequestError:
    """The error for somebody who wants an answer remembered in another way than its request offers."""
    there = ", ".join(f"{number} ({visible(name)})" for number, name in enumerate(offered, 1))
    return RequestError(f"request {request_id} offers no {quoted(which)} to remember; it offers {there}")


# --- who works on it, comments ---


class AssignedRequest(NamedTuple):
    """A request that was assigned, or released."""

    request: ApprovalRequest
    before: str
    """Who worked on it before."""
    may_answer: bool
    """Whether whoever works on it now may answer it. If not, nobody can approve it."""


async def assign(broker: Broker, prefix: str, to: str, acting: Acting) -> AssignedRequest:
    """Assign a request to somebody; an empty name releases it."""
    await broker.sweep()
    before = await broker.find(prefix)
    name = to if not to or person_key(to) == acting.by.key else broker.people.named(to)
    after = await broker.assign(before.id, name, by=acting.by, admin=acting.is_admin)
    may = not name or bool(await broker.people.entitled(after.id, [Actor(name=name)]))
    return AssignedRequest(after, before.assigned, may)


async def comment(
    broker: Broker, request: ApprovalRequest, text: str, kind: CommentKind, acting: Acting, answers: str = ""
) -> Comment:
    """Leave a note on a request, ask back, or reply. `answers`: the beginning of the id of the question."""
    if kind is CommentKind.ANSWER:
        answers = await broker.comments.question_meant(request.id, answers)
    return await broker.comments.add(request.id, text, by=acting.by, kind=kind, answers=answers)


# --- grants ---


async def revoke(broker: Broker, prefix: str, acting: Acting) -> tuple[Grant, Grant]:
    """Revoke a remembered answer; return it before and after. Who may not lift a denial gets `NotEntitled`."""
    grant = await broker.grants.get(prefix)
    if not grant.approved and not _may_lift(broker, grant, acting):
        needed = f", somebody with the role {visible(grant.role)}" if grant.role else ""
        raise NotEntitled(f"this is a no: only {visible(grant.by)}{needed} or an admin may revoke it")
    return grant, await broker.grants.revoke(grant.id, by=acting.by.name)


def _may_lift(broker: Broker, grant: Grant, acting: Acting) -> bool:
    """Whether whoever acts may revoke a denial. Revoking it allows more, so a program may not."""
    by = broker.people.known(acting.by)
    if by.kind is not ActorKind.PERSON:
        return False
    return by.key == person_key(grant.by) or bool(grant.role and grant.role in by.roles) or acting.is_admin


# --- people ---


async def delegate(
    broker: Broker, absent: str, deputy: str, until: datetime, since: datetime, acting: Acting
) -> Delegation:
    """Let a deputy answer in somebody's place. People do so for themselves, and only an admin for others."""
    by, people = acting.by, broker.people
    if person_key(absent) != by.key and not acting.is_admin:
        raise NotEntitled(f"only an admin may name a deputy for {visible(absent)}, who is somebody else")
    made = Delegation(absent=people.named(absent), deputy=people.named(deputy), until=until, since=since, by=by.name)
    await people.delegate(made)
    return made


async def end_delegation(broker: Broker, absent: str, deputy: str, acting: Acting) -> Delegation:
    """End a delegation, as one of the two or as an admin; return it."""
    if acting.by.key not in (person_key(absent), person_key(deputy)) and not acting.is_admin:
        raise NotEntitled("only the two people or an admin may end a delegation")
    return await broker.people.end_delegation(absent, deputy, by=acting.by.name)


# --- runs, and the switch ---


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelledRun:
    """A run that was cancelled."""

    id: str
    withdrawn: int
    """How many requests were withdrawn with it."""
    alive: bool
    """Whether a process still executes it; that process stops at the run's next step."""


async def cancel_run(broker: Broker, prefix: str, reason: str, acting: Acting) -> CancelledRun:
    """Cancel a run and withdraw its questions."""
    before = await broker.runs.status((await broker.runs.get(prefix)).id)
    waiting = await broker.runs.waiting(before.run.id)
    done = await broker.runs.cancel(before.run.id, by=acting.by.name, reason=reason)
    withdrawn = sum(one.state is State.PENDING for one in waiting)
    return CancelledRun(id=done.id, withdrawn=withdrawn, alive=before.alive)


async def unhalt(broker: Broker, why: str, acting: Acting) -> bool:
    """Lift a halt, as an admin; return whether there was one."""
    if not acting.is_admin:
        raise NotEntitled("only an admin may lift a halt")
    return await broker.switch.unhalt(by=acting.by.name, why=why)
