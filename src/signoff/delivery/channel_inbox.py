"""What a channel is handed: requests are looked up and answered here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

from signoff.broker.comments import with_comments
from signoff.broker.readers import has_read, note_reader
from signoff.core.decision import ApprovalDecision
from signoff.core.delivery import NOWHERE
from signoff.core.offer import may_be_remembered
from signoff.core.request import ApprovalRequest, State
from signoff.core.request_status import settled_at, settled_text
from signoff.core.safe import safe_text, spelled_out
from signoff.core.subject import Subject
from signoff.core.verdict import Effect, Requirement, Verdict
from signoff.delivery.delivery_status import place_of, show_again
from signoff.errors import AlreadySettled, EditRefused, NotEntitled, RequestError

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.core.people import Actor

TEST = "signoff_test"
"""The tool of a question about nothing."""
TEST_WAITS = timedelta(minutes=2)

Take: TypeAlias = "Callable[[ApprovalRequest, ApprovalDecision, Actor], Awaitable[ApprovalRequest]]"
"""Checks an answer and has the broker take it. Raises a `RequestError` where it cannot be accepted."""
Check: TypeAlias = "Callable[[ApprovalRequest, ApprovalDecision], Awaitable[ApprovalDecision]]"
"""Checks an answer as `Take` does, without having it taken: gives it as it would be. Raises as `Take` does."""


@dataclass(frozen=True, slots=True)
class StoreInbox:
    """The inbox of one channel, over a broker. It implements `ports.Inbox`."""

    broker: Broker
    channel: str
    """The name of the channel it is handed to: what was shown where is kept under it."""
    take: Take
    check: Check | None = field(default=None, kw_only=True)
    """None: other arguments are checked when they are answered with, and not before."""

    async def answer(self, request_id: str, decision: ApprovalDecision) -> ApprovalRequest:
        """Take an answer; raises as `ports.Inbox.answer` says."""
        return await self.answer_read(await self.broker.get(request_id), decision)

    async def answer_read(self, request: ApprovalRequest, decision: ApprovalDecision) -> ApprovalRequest:
        """As `answer`, of a request that was read a moment ago. Whether the answer counts, the store decides."""
        by = self._who(decision.by)
        try:
            return await self.take(request, decision, by)
        except AlreadySettled as late:
            raise self._safe(late, await self.broker.get(request.id)) from late

    async def problems(self, request_id: str, args: Mapping[str, Any]) -> Sequence[str]:
        """Why other arguments could not be run instead, as they may be shown; nothing is answered.

        Whether whoever asks may answer at all is another question.
        """
        request, check = await self.broker.get(request_id), self.check
        if check is None:
            raise RequestError("edited arguments cannot be checked here")
        try:
            await check(request, ApprovalDecision(approved=True, edited_args=args))
        except EditRefused as refused:
            return [safe_text(one, secrets=request.secrets) for one in refused.problems]
        return []

    async def tell(self, request_id: str, *, happened: bool, by: Actor, note: str = "") -> ApprovalRequest:
        """Say what became of a call whose process died."""
        try:
            return await self.broker.tell(request_id, happened=happened, by=self._who(by), note=note)
        except AlreadySettled as late:
            raise self._safe(late, await self.broker.get(request_id)) from late

    async def request(self, prefix: str) -> ApprovalRequest:
        return await self.broker.comments.shown_with(await self.broker.find(prefix))

    async def pending(self) -> Sequence[ApprovalRequest]:
        """What waits, after whatever time has done to it."""
        await self.broker.sweep()
        return await self.broker.store.read(lambda tx: [with_comments(tx, one) for one in tx.queue.open()])

    async def unknown(self) -> Sequence[ApprovalRequest]:
        from signoff.broker.unknown import unknown_requests

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
        """Ask a question about nothing, as `ports.Inbox.try_out` says. It waits for two minutes."""
        asked = ApprovalRequest(
            tool_call_id=TEST,
            tool_name=TEST,
            summary="this is a test: nothing runs, whatever you answer",
            verdict=Verdict(
                effect=Effect.ASK,
                reason=f"{by.name} tries out this channel",
                requirement=Requirement(timeout=TEST_WAITS, message="Please approve or deny this test request."),
            ),
            requester=by.name,
        )
        [opened] = await self.broker.open([asked], places={self.channel: at} if at else NOWHERE)
        return opened

    async def grant_text(self, request_id: str, decision: ApprovalDecision) -> str:
        """Exactly what would be remembered; raises where it may not be, or where the request waits no longer."""
        from signoff.broker.grants import check_terms

        request = await self.broker.get(request_id)
        if request.state is not State.PENDING:
            raise self._safe(AlreadySettled(settled_text(request)).with_moment(settled_at(request)), request)
        if not self.broker.remembers or not may_be_remembered(request):
            raise RequestError("the answer to this request cannot be remembered here: it is valid once")
        check_terms(request, decision)
        return spelled_out(request, decision)

    def _who(self, by: Actor | None) -> Actor:
        if by is None:
            raise NotEntitled("the answer does not say who gave it")
        return by if by.via else replace(by, via=self.channel)

    def _safe(self, late: AlreadySettled, request: ApprovalRequest) -> AlreadySettled:
        """What a late answer is told, as it may be shown: a note that somebody wrote may hold anything."""
        return AlreadySettled(safe_text(str(late), secrets=request.secrets)).with_moment(late.moment)
