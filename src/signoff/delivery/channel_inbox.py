"""The inbox that a channel is given: it looks up requests and answers them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from signoff.broker.comments import with_comments
from signoff.broker.grants import check_terms
from signoff.broker.readers import has_read, note_reader
from signoff.broker.unknown_outcomes import unknown_requests
from signoff.core.card import effect_of_edit
from signoff.core.decision import ApprovalDecision
from signoff.core.delivery import NOWHERE
from signoff.core.preview import Preview
from signoff.core.remembering import may_be_remembered
from signoff.core.request import ApprovalRequest, State
from signoff.core.request_status import settled_at, settled_text
from signoff.core.safe_text import safe_text
from signoff.core.subject import Subject
from signoff.core.verdict import Effect, Requirement, Verdict
from signoff.delivery.delivery_status import place_of, show_again
from signoff.errors import AlreadySettled, EditRefused, NotEntitled, RequestError, StoreDamaged
from signoff.large_work import in_thread
from signoff.policy.grant_text import spelled_out
from signoff.ports import Transaction

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.core.people import Actor

TEST = "signoff_test"
"""The tool name of a test request."""
TEST_WAITS = timedelta(minutes=2)

Take: TypeAlias = "Callable[[ApprovalRequest, ApprovalDecision, Actor], Awaitable[ApprovalRequest]]"
"""Checks an answer and has the broker store it. Raises a `RequestError` if it is not accepted."""
Check: TypeAlias = "Callable[[ApprovalRequest, ApprovalDecision], Awaitable[ApprovalDecision]]"
"""Checks an answer as `Take` does without storing it. Returns it as it would be stored; raises as `Take` does."""


class EditCheck(NamedTuple):
    """What is known of edited arguments before they are approved. Texts are safe to show."""

    problems: Sequence[str] = ()
    """Why they would be refused."""
    effect: Preview | None = None
    """What the call would change with them, as `core.card.effect_of_edit` says it."""


@dataclass(frozen=True, slots=True)
class StoreInbox:
    """The inbox of one channel, on top of a broker. Implements `ports.Inbox`."""

    broker: Broker
    channel: str
    """The channel's name. Deliveries are stored under it."""
    take: Take
    check: Check | None = field(default=None, kw_only=True)
    """None: edited arguments are checked only when they are submitted."""
    with_edit: Callable[[ApprovalRequest, Mapping[str, Any]], ApprovalRequest | None] = field(
        default=lambda request, args: None, kw_only=True
    )
    """Returns a request as it would be asked with edited arguments; None if that is not known here. It may block."""

    async def answer(self, request_id: str, decision: ApprovalDecision) -> ApprovalRequest:
        """Store an answer; raises as `ports.Inbox.answer` says."""
        return await self.answer_read(await self.broker.get(request_id), decision)

    async def answer_read(self, request: ApprovalRequest, decision: ApprovalDecision) -> ApprovalRequest:
        """Do the same as `answer` for a request that was just read. The store decides whether the answer counts."""
        by = self._who(decision.by)
        try:
            return await self.take(request, decision, by)
        except AlreadySettled as late:
            raise self._safe(late, await self.broker.get(request.id)) from late

    async def edit_check(self, request_id: str, args: Mapping[str, Any], by: Actor) -> EditCheck:
        """Check edited arguments; nothing is answered. What they change is told only to who may approve the request.

        Raises `RequestError` if arguments cannot be checked here.
        """
        request, check = await self.broker.get(request_id), self.check
        if check is None:
            raise RequestError("edited arguments cannot be checked here")
        try:
            whole = (await check(request, ApprovalDecision(approved=True, edited_args=args))).edited_args
        except EditRefused as refused:
            return EditCheck([safe_text(one, secrets=request.secrets) for one in refused.problems])
        if whole is None or request.state is not State.PENDING or not await self.entitled(request.id, [by]):
            return EditCheck()
        effect = partial(effect_of_edit, request, whole, partial(self.with_edit, request))
        return EditCheck(effect=await in_thread(f"describing an edit of request {request.id}", effect, about=whole))

    async def tell(self, request_id: str, *, happened: bool, by: Actor, note: str = "") -> ApprovalRequest:
        """Record the outcome of a call whose process died."""
        try:
            return await self.broker.tell(request_id, happened=happened, by=self._who(by), note=note)
        except AlreadySettled as late:
            raise self._safe(late, await self.broker.get(request_id)) from late

    async def request(self, prefix: str) -> ApprovalRequest:
        return await self.broker.shown(await self.broker.find(prefix))

    async def pending(self) -> Sequence[ApprovalRequest]:
        """Return the open requests, after expired ones were settled."""
        await self.broker.sweep()
        return await self.broker.store.read(lambda tx: _readable(tx, tx.queue.open()))

    async def unknown(self) -> Sequence[ApprovalRequest]:
        return await self.broker.store.read(unknown_requests)

    async def recent(self, *, limit: int) -> Sequence[ApprovalRequest]:
        return await self.broker.store.read(lambda tx: tx.past.recent(limit=limit))

    async def where(self, request_id: str, *, planned: bool = False) -> str:
        return await place_of(self.broker.ledger, self.channel, Subject.parse(request_id), planned=planned)

    async def gone(self, request_id: str) -> None:
        await show_again(self.broker.ledger, self.channel, Subject.parse(request_id))

    async def opened(self, request_id: str, by: Actor) -> None:
        await note_reader(self.broker.ledger, request_id, by)

    async def has_opened(self, request_id: str, by: Actor) -> bool:
        return await has_read(self.broker.ledger, request_id, by)

    async def entitled(self, request_id: str, people: Sequence[Actor]) -> Sequence[Actor]:
        return await self.broker.people.entitled(request_id, people)

    async def try_out(self, by: Actor, at: str = "") -> ApprovalRequest:
        """Ask a test question, as `ports.Inbox.try_out` says. It expires after two minutes."""
        asked = harmless_request(f"{by.name} tries out this channel", requester=by.name)
        [opened] = await self.broker.open([asked], places={self.channel: at} if at else NOWHERE)
        return opened

    async def grant_text(self, request_id: str, decision: ApprovalDecision) -> str:
        """Return exactly what would be remembered. Raises if that is not allowed or the request is not pending."""
        request = await self.broker.get(request_id)
        if request.state is not State.PENDING:
            raise self._safe(AlreadySettled(settled_text(request)).with_moment(settled_at(request)), request)
        if not self.broker.remembers or not may_be_remembered(request):
            raise RequestError("the answer to this request cannot be remembered here: it is valid once")
        check_terms(request, decision, self.broker.clock.now())
        return spelled_out(request, decision)

    def _who(self, by: Actor | None) -> Actor:
        if by is None:
            raise NotEntitled("the answer does not say who gave it")
        return by if by.via else replace(by, via=self.channel)

    def _safe(self, late: AlreadySettled, request: ApprovalRequest) -> AlreadySettled:
        """Return the error for a late answer, safe to show: a note in it may hold anything."""
        return AlreadySettled(safe_text(str(late), secrets=request.secrets)).with_moment(late.moment)


def harmless_request(reason: str, *, wait: timedelta | None = TEST_WAITS, requester: str = "") -> ApprovalRequest:
    """Return a harmless request to ask people about: nothing runs, whatever the answer is."""
    return ApprovalRequest(
        tool_call_id=TEST,
        tool_name=TEST,
        args={},
        summary="this is a test: nothing runs, whatever you answer",
        verdict=Verdict(
            effect=Effect.ASK,
            reason=reason,
            requirement=Requirement(timeout=wait, message="Please approve or deny this test request."),
        ),
        requester=requester,
    )


def _readable(tx: Transaction, requests: Iterable[ApprovalRequest]) -> list[ApprovalRequest]:
    """Return the requests with their comments, without those that cannot be read whole."""
    found: list[ApprovalRequest] = []
    for one in requests:
        with suppress(StoreDamaged):
            found.append(with_comments(tx, one))
    return found
