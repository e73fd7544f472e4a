"""Test environment for a channel: a real broker over a real store, its inbox, and calls to ask about."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from signoff.broker import Broker
from signoff.config.settings import Person, Settings
from signoff.core.call import Call
from signoff.core.decision import ApprovalDecision
from signoff.core.delivery import Delivery, DeliveryState
from signoff.core.notice import Asked, Notice, RunResult
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest
from signoff.core.verdict import Effect, Requirement, Verdict
from signoff.errors import RequestError
from signoff.policy.call_paths import Facts
from signoff.policy.engine import Policy
from signoff.policy.offer import may_vary
from signoff.ports import Channel, Inbox, Store, Transaction
from signoff.store.memory_store import MemoryStore
from signoff.testing.manual_clock import FakeClock
from signoff.wiring.program_inbox import project_inbox

ANA = Actor(name="ana", roles=frozenset({"ops"}))
"""The person who uses the channel."""
BEN = Actor(name="ben", roles=frozenset({"ops", "boss"}), via="elsewhere")
"""The person who answers elsewhere."""

PATIENCE = 20.0
"""Timeout of `soon`, in seconds."""

TOOL, CHAIN, RULE, WHY = "send_mail", ("triage", "mailer"), "mail:2", "mail leaves the house"
ARGS = {"to": "bo@example.com", "subject": "Lunch", "copies": 3}
SCHEMA = {
    "type": "object",
    "properties": {"to": {"type": "string"}, "subject": {"type": "string"}, "copies": {"type": "integer"}},
    "required": ["to", "subject", "copies"],
    "additionalProperties": False,
}


@dataclass(slots=True)
class WatchedInbox:
    """An inbox that records the answers it gets."""

    inbox: Inbox
    taken: list[tuple[str, ApprovalDecision]] = field(default_factory=list[tuple[str, ApprovalDecision]])
    """Answers that were accepted."""
    refused: list[tuple[str, RequestError]] = field(default_factory=list[tuple[str, RequestError]])
    """Answers that were refused, with the error."""

    async def answer(self, request_id: str, decision: ApprovalDecision) -> ApprovalRequest:
        try:
            request = await self.inbox.answer(request_id, decision)
        except RequestError as refusal:
            self.refused.append((request_id, refusal))
            raise
        self.taken.append((request_id, decision))
        return request

    async def tell(self, request_id: str, *, happened: bool, by: Actor, note: str = "") -> ApprovalRequest:
        return await self.inbox.tell(request_id, happened=happened, by=by, note=note)

    async def request(self, prefix: str) -> ApprovalRequest:
        return await self.inbox.request(prefix)

    async def pending(self) -> Sequence[ApprovalRequest]:
        return await self.inbox.pending()

    async def unknown(self) -> Sequence[ApprovalRequest]:
        return await self.inbox.unknown()

    async def recent(self, *, limit: int) -> Sequence[ApprovalRequest]:
        return await self.inbox.recent(limit=limit)

    async def where(self, request_id: str, *, planned: bool = False) -> str:
        return await self.inbox.where(request_id, planned=planned)

    async def gone(self, request_id: str) -> None:
        await self.inbox.gone(request_id)

    async def opened(self, request_id: str, by: Actor) -> None:
        await self.inbox.opened(request_id, by)

    async def try_out(self, by: Actor, at: str = "") -> ApprovalRequest:
        return await self.inbox.try_out(by, at)

    async def has_opened(self, request_id: str, by: Actor) -> bool:
        return await self.inbox.has_opened(request_id, by)

    async def entitled(self, request_id: str, people: Sequence[Actor]) -> Sequence[Actor]:
        return await self.inbox.entitled(request_id, people)

    async def grant_text(self, request_id: str, decision: ApprovalDecision) -> str:
        return await self.inbox.grant_text(request_id, decision)


class Office:
    """A broker with a clock you control, and two people: `ANA` (ops) at the channel, `BEN` (ops, boss) elsewhere."""

    def __init__(self, store: Store | None = None) -> None:
        self.clock = FakeClock()
        self.store = store or MemoryStore(record=True)
        people = {one.name: one.roles for one in (ANA, BEN)}
        self.broker = Broker(self.store, self.clock, people=people)
        staff = {name: Person(name=name, roles=roles) for name, roles in people.items()}
        self._settings = Settings(policy=Policy(rules=()), people=staff)
        self._asked = 0

    def inbox(self, channel: str) -> WatchedInbox:
        """The inbox of one channel."""
        return WatchedInbox(project_inbox(self.broker, self._settings, channel))

    async def ask(
        self,
        *,
        args: Mapping[str, Any] = ARGS,
        tool: str = TOOL,
        why: str = WHY,
        schema: Mapping[str, Any] | None = None,
        need: Requirement | None = None,
        count: int = 1,
        conversation: str = "talk",
    ) -> list[Asked]:
        """Ask about `count` calls at once; return their notices."""
        requests: list[ApprovalRequest] = []
        for _ in range(count):
            self._asked += 1
            call_id = f"call-{self._asked}"
            call = Call(
                tool=tool,
                args=dict(args),
                call_id=call_id,
                run_id="run",
                conversation_id=conversation,
                worker=CHAIN,
                toolset="mail",
            )
            verdict = Verdict(effect=Effect.ASK, rules=(RULE,), reason=why, requirement=need or Requirement())
            requests.append(
                ApprovalRequest(
                    tool_call_id=call_id,
                    tool_name=tool,
                    args=dict(args),
                    call=call,
                    may_vary=may_vary(Facts(call, None)),
                    verdict=verdict,
                    schema=schema or SCHEMA,
                )
            )
        opened = await self.broker.open(requests)
        return [Asked(request=one, number=number, of=count) for number, one in enumerate(opened, 1)]

    async def now(self, notice: Asked) -> Asked:
        """The notice in its current state."""
        request = await self.broker.get(notice.request.id)
        return Asked(request=request, number=notice.number, of=notice.of)

    async def settle_elsewhere(self, notice: Asked, *, approved: bool, note: str = "") -> Asked:
        """Let Ben answer in another channel."""
        self.clock.advance(61)
        await self.broker.answer(notice.request.id, ApprovalDecision(approved=approved, note=note), by=BEN)
        return await self.now(notice)

    @staticmethod
    def link(request_id: str) -> str:
        """The address of a request's page, as the context of a channel gives it."""
        return f"https://signoff.example/requests/{request_id}"

    async def claim(self, notice: Asked) -> Asked:
        """Start the approved call. It is not over yet."""
        await self.broker.claim(notice.request.id)
        return await self.now(notice)

    async def run(self, notice: Asked, *, preview: str = "", error: str | None = None) -> Asked:
        """Run the approved call."""
        await self.broker.claim(notice.request.id)
        self.broker.finish(notice.request.id, preview=preview, error=error)
        await self.store.flush()
        return await self.now(notice)

    async def deliver(self, channel: Channel, notice: Notice) -> str:
        """Show a notice as the reconciler does: its place is stored and passed in again the next time."""
        name = channel.name

        def known(tx: Transaction) -> tuple[Delivery | None, str]:
            before = tx.deliveries.find(channel=name, trail=notice.trail)
            return tx.deliveries.get(name, notice.key), next((one.place for one in reversed(before) if one.place), "")

        delivery, beside = await self.store.read(known)
        at = await channel.show(notice, delivery.place if delivery is not None else "", beside)
        shown = Delivery(
            channel=name,
            subject=notice.key,
            trail=notice.trail,
            state=DeliveryState.SHOWN,
            place=at,
            shown=notice.version,
            live=notice.is_live,
            result=notice if isinstance(notice, RunResult) else None,
        )
        await self.store.write("deliver", lambda tx: tx.deliveries.put(shown))
        return at

    async def is_due(self, channel: str, notice: Notice) -> bool:
        """Whether the notice has to be shown, for example because the channel reported that it is gone."""
        delivery = await self.store.read(lambda tx: tx.deliveries.get(channel, notice.key))
        return delivery is None or delivery.shown < notice.version

    def close(self) -> None:
        self.store.close()


BREATH = 0.002
"""Seconds between two checks. Polling without a pause would starve the threads that it waits for."""


async def soon(
    holds: Callable[[], bool | Awaitable[bool]], otherwise: str | Callable[[], str], *, patience: float | None = None
) -> None:
    """Poll until `holds`, a plain or async function, returns true.

    Other tasks run between two checks. Raises `AssertionError` with `otherwise` after the timeout.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + (PATIENCE if patience is None else patience)
    while True:
        held = holds()
        if inspect.isawaitable(held):
            held = await held
        if held:
            return
        if loop.time() > end:
            raise AssertionError(otherwise() if callable(otherwise) else otherwise)
        await asyncio.sleep(BREATH)
