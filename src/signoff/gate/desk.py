"""Where answers are taken: asks a user interface, checks what it answers, and remembers what it should."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, cast

from signoff.broker import Broker
from signoff.core.decision import ApprovalDecision, Ending, Remember
from signoff.core.grant import Grant
from signoff.core.mode import ApprovalMode
from signoff.core.offer import may_be_remembered
from signoff.core.people import Answerer, AnswererKind
from signoff.core.request import ApprovalRequest, State
from signoff.errors import AlreadySettled, EditRefused, NotEntitled, WrongUse
from signoff.gate.memory import Memory
from signoff.policy.engine import Policy
from signoff.policy.layers import Layers
from signoff.ports import ApprovalUI

CheckEdit = Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
"""Validates and judges edited arguments; returns them as they will run, or raises `EditRefused`."""

UNNAMED = Answerer(name="approver", kind=AnswererKind.SCRIPT)
"""Who answered, where a user interface does not say. It never counts as a particular person."""


@dataclass(slots=True)
class Desk:
    """Takes answers to requests for the gate."""

    broker: Broker
    memory: Memory
    policy: Policy | Layers
    edits: dict[str, CheckEdit] = field(default_factory=dict[str, CheckEdit])
    """How to check edited arguments, by the id of a pending request."""

    async def take(self, request_id: str, decision: ApprovalDecision, *, by: Answerer | None = None) -> ApprovalRequest:
        """Take one answer: check edits, vote, remember. Raises a `RequestError` where it cannot be accepted."""
        return await self._take(await self.broker.get(request_id), decision, by)

    async def _take(
        self, request: ApprovalRequest, decision: ApprovalDecision, by: Answerer | None = None
    ) -> ApprovalRequest:
        request_id = request.id
        self.memory.check(decision)
        if decision.approved and decision.edited_args is None and request.call is not None and request.call.unreadable:
            raise EditRefused(tuple(f"{what} cannot be shown, so not approved" for what in request.call.unreadable))
        if request.state is State.PENDING and decision.edited_args is not None:
            decision = replace(decision, edited_args=await self._checked(request, decision.edited_args))
        settled = await self.broker.answer(request_id, decision, by=by or decision.by or UNNAMED, checked=True)
        if settled.state is not State.PENDING:
            self.edits.pop(request_id, None)
            self._remember(settled)
        return settled

    async def _checked(self, request: ApprovalRequest, args: Mapping[str, Any]) -> Mapping[str, Any]:
        """Edited arguments as they will run: checked by the run that asks if it is here, else by what is on record."""
        if (check := self.edits.get(request.id)) is not None:
            return await check(args)
        from signoff.broker.edits import checked_edit

        policy = await self.broker.policies.of(request, beside=self.policy)
        if policy is None:
            raise EditRefused(("the policy has changed since the call was asked about, so it has to be asked anew",))
        return checked_edit(request, args, policy)

    async def ask(self, requests: Sequence[ApprovalRequest], ui: ApprovalUI, mode: ApprovalMode) -> None:
        """Put open requests to a user interface, until each has its answer or was settled elsewhere."""
        choose_all = getattr(ui, "choose_all", None)
        if len(requests) > 1 and callable(choose_all):
            shown = tuple(_copy(request) for request in requests)
            decisions = cast("Sequence[ApprovalDecision]", await called(choose_all, shown, mode=mode))
            if len(decisions) != len(requests):
                raise WrongUse(f"choose_all was given {len(requests)} requests and answered {len(decisions)}")
            again = [await self._offer(one, answer) for one, answer in zip(requests, decisions, strict=True)]
            requests = [request for request in again if request is not None]
        for number, request in enumerate(requests):
            await self._ask_until_accepted(request, ui, mode, is_first=number == 0 and not request.problem)

    async def _ask_until_accepted(
        self, request: ApprovalRequest, ui: ApprovalUI, mode: ApprovalMode, *, is_first: bool
    ) -> None:
        """Ask until there is an answer. The first of a batch was looked up just before: nothing can be new about it."""
        current: ApprovalRequest | None = request
        while current is not None:
            if not is_first or current is not request:
                if (await self.broker.get(current.id)).state is not State.PENDING:
                    return
                if await self._answer_from_memory(current):
                    return
            elif request.state is not State.PENDING:
                return
            current = await self._offer(current, await called(ui.choose, _copy(current), mode=mode))

    async def _offer(self, request: ApprovalRequest, decision: ApprovalDecision) -> ApprovalRequest | None:
        """Take an answer; if it cannot be accepted, the request to ask again with, which says why."""
        if decision.ending is Ending.CANCELLED:
            return None  # the user interface was told that the question is moot; that is no answer
        try:
            await self._take(request, decision)
        except AlreadySettled:
            return None
        except (EditRefused, NotEntitled) as problem:
            draft = {"draft": decision.edited_args} if decision.edited_args is not None else {}
            if isinstance(problem, NotEntitled) and request.problem == str(problem):
                return None  # told once and tried again: whoever this is cannot answer, so the request stays open
            return replace(request, problem=str(problem), metadata={**request.metadata, **draft})
        return None

    async def _answer_from_memory(self, request: ApprovalRequest) -> bool:
        """An answer earlier in the same batch may have been remembered for an identical call."""
        grant = await self.recall(request)
        if grant is None:
            return False
        remembered = Answerer(name=f"{grant.by or 'somebody'}, remembered", kind=AnswererKind.MODE, via="memory")
        await self.take(request.id, ApprovalDecision(approved=grant.approved, note=grant.note, by=remembered))
        return True

    async def recall(self, request: ApprovalRequest) -> Grant | None:
        """A remembered decision for this call, unless its rule wants particular people."""
        if request.call is None or not may_be_remembered(request):
            return None
        return await self.memory.recall(request.call, request.run)

    def _remember(self, request: ApprovalRequest) -> None:
        decision = request.decision
        if decision is None or decision.remember is Remember.NONE or not may_be_remembered(request):
            return
        if decision.by is not None and decision.by.kind is not AnswererKind.MODE:
            self.memory.remember(request, decision)


def _copy(request: ApprovalRequest) -> ApprovalRequest:
    """A request to hand out: whoever is shown it cannot change what is on record."""
    return request.changed_to(args=deepcopy(request.args), metadata=deepcopy(request.metadata))


async def called(method: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call a plain or async method; a plain one runs in a thread, because it may wait for a person."""
    if inspect.iscoroutinefunction(method):
        return await method(*args, **options)
    result = await asyncio.to_thread(method, *args, **options)
    return await result if inspect.isawaitable(result) else result
