"""Take the answers to a gate's requests: check them, pass them to the broker, and remember them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from signoff.broker import Broker
from signoff.broker.edits import checked_edit
from signoff.core.decision import ApprovalDecision, Remember
from signoff.core.grant import Grant
from signoff.core.people import Actor, ActorKind
from signoff.core.remembering import may_be_remembered
from signoff.core.request import ApprovalRequest, State, WithEdit
from signoff.errors import AlreadySettled, EditRefused
from signoff.gate.remembered_answers import Memory
from signoff.policy.engine import Policy
from signoff.policy.layers import Layers

CheckEdit = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""Validates and judges edited arguments; returns them as they will run, or raises `EditRefused`."""

_DESCRIBING_TAKES = 10.0
"""Seconds that a description may take while somebody waits for it."""


def request_with_edit(
    loop: asyncio.AbstractEventLoop,
    described: Callable[[Mapping[str, Any]], Awaitable[ApprovalRequest]],
    args: Mapping[str, Any],
) -> ApprovalRequest | None:
    """Return a request as it would be asked with edited arguments; None if that is not known.

    It is called in the thread of an approver; the tool describes the call in the event loop of the run.
    """

    async def shown() -> ApprovalRequest:
        return await described(args)

    try:
        if asyncio.get_running_loop() is loop:  # waiting would stop the loop that has to answer
            return None
    except RuntimeError:
        pass
    asked = asyncio.run_coroutine_threadsafe(shown(), loop)
    try:
        return asked.result(_DESCRIBING_TAKES)
    except Exception:  # what is wrong with the arguments is said when the answer is taken
        asked.cancel()
        return None


@dataclass(slots=True)
class GateAnswers:
    """Takes the answers to requests of a gate."""

    broker: Broker
    memory: Memory
    policy: Policy | Layers
    edits: dict[str, CheckEdit] = field(default_factory=dict[str, CheckEdit])
    """How to check edited arguments, by the id of a pending request."""
    with_edits: dict[str, WithEdit] = field(default_factory=dict[str, WithEdit])
    """Requests as they would be asked with edited arguments, by the id of a pending one."""

    async def take(self, request: ApprovalRequest, decision: ApprovalDecision, by: Actor) -> ApprovalRequest:
        """Take one answer: check edits, vote, remember. Raises a `RequestError` if it cannot be accepted."""
        if request.state is State.PENDING and decision.edited_args is not None:
            decision = replace(decision, edited_args=await self.checked(request, decision.edited_args))
        return await self.vote(request.id, decision, by)

    async def take_by_id(self, request_id: str, decision: ApprovalDecision, by: Actor) -> ApprovalRequest:
        """As `take`, for a request that was not read yet. It is read only to check edited arguments."""
        if decision.edited_args is not None:
            return await self.take(await self.broker.get(request_id), decision, by)
        return await self.vote(request_id, decision, by)

    async def vote(self, request_id: str, decision: ApprovalDecision, by: Actor) -> ApprovalRequest:
        """Store an answer whose edited arguments were checked, and remember it."""
        self.memory.check(decision)
        settled = await self.broker.answer(request_id, decision, by=by, checked=True, refuse=_refuse_unreadable)
        if settled.state is not State.PENDING:
            self.edits.pop(request_id, None)
            self.with_edits.pop(request_id, None)
            self._remember(settled)
        return settled

    async def checked(self, request: ApprovalRequest, args: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return edited arguments as they will run. The asking run checks them if it is here, else the record."""
        if (check := self.edits.get(request.id)) is not None:
            return await check(args)
        policy = await self.broker.policies.of(request, beside=self.policy)
        if policy is None:
            raise EditRefused(("the policy has changed since the request was made, so signoff has to ask again",))
        return checked_edit(request, args, policy)

    async def answer_from_memory(self, request: ApprovalRequest) -> bool:
        """Settle a request from a grant that was made since it was asked, and return whether there was one."""
        if (grant := await self.recall(request)) is None:
            return False
        by = Actor(name=f"{grant.by or 'somebody'}, remembered", kind=ActorKind.MODE, via="memory")
        with suppress(AlreadySettled):
            await self.take(request, ApprovalDecision(approved=grant.approved, note=grant.note, by=by), by)
        return True

    async def recall(self, request: ApprovalRequest) -> Grant | None:
        """Return a grant for this call, if one may replace the answer."""
        if request.call is None or request.verdict is None or not may_be_remembered(request):
            return None
        return await self.memory.recall(request.call, request.run, request.verdict)

    def _remember(self, request: ApprovalRequest) -> None:
        decision = request.decision
        if decision is None or decision.remember is Remember.NONE or not may_be_remembered(request):
            return
        if decision.by is not None and decision.by.kind is not ActorKind.MODE:
            self.memory.remember(request, decision)


def _refuse_unreadable(request: ApprovalRequest, decision: ApprovalDecision) -> None:
    if decision.approved and decision.edited_args is None and request.call is not None and request.call.unreadable:
        raise EditRefused(
            tuple(f"{what} cannot be shown, so the call cannot be approved" for what in request.call.unreadable)
        )
