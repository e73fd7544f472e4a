"""The questions of one run: what it asks, what is on record about its calls, and the wait for answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ApprovalRequired
from pydantic_ai.messages import ModelResponse
from pydantic_ai.tools import DeferredToolRequests

from signoff.core.call import Call
from signoff.core.card import safe_summary
from signoff.core.lifecycle import OPEN
from signoff.core.request import ApprovalRequest, State
from signoff.errors import RequestError
from signoff.gate.calls import newest_response
from signoff.gate.gate import Gate
from signoff.gate.keeper import Keeper
from signoff.gate.passage import Passage
from signoff.gate.waiting import wait_for_answers

REQUEST = "signoff"
"""Key in a deferred call's metadata under which the request is named."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A call this run asks about."""

    request: ApprovalRequest
    passage: Passage
    said: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the tool itself said when it asked."""
    public: dict[str, Any] = field(default_factory=dict[str, Any])
    """What the outside sees of it, in the metadata of the deferred call."""


@dataclass(slots=True)
class Questions:
    """What a run asks. A call is known by its key, because providers reuse call ids within a run."""

    gate: Gate
    on_open: Callable[[Passage, ApprovalRequest], None]
    """Told of every request this run opens."""
    keeper: Keeper | None
    """Keeps the run in the store, where that outlives the process."""
    outer: Keeper | None
    """Keeps the outermost run."""
    check_edit: Callable[[Passage, ApprovalRequest, Mapping[str, Any]], Awaitable[Mapping[str, Any]]]
    asked: dict[str, Asked] = field(default_factory=dict[str, Asked])
    """By call key, whatever was asked in this run, answered or not."""
    waiting: set[str] = field(default_factory=set[str])
    """Ids of requests this run opened and that have no answer yet."""
    parked: bool = False
    """Whether the run leaves requests unanswered, so that it has to suspend."""
    made_here: dict[int, ModelResponse] = field(default_factory=dict[int, ModelResponse])
    """The responses the model gave in this run, by identity: their calls cannot be on record from before."""

    def is_new(self, ctx: RunContext[Any]) -> bool:
        """Whether the calls at hand were made in this run, so that nothing from before can be on record about them."""
        response = newest_response(ctx.messages)
        return response is not None and id(response) in self.made_here

    async def about(self, ctx: RunContext[Any], call: Call) -> ApprovalRequest | None:
        """The newest request about a call.

        A resumed call whose history was rewritten, or put into another conversation, may have lost its place. Then a
        request about the same call id and arguments speaks against it: neither a no nor a spent approval is lost.
        """
        # A request that was settled when the run was taken up: if anything became of it since, its claim will say so.
        known = self.keeper.known.pop(call.key, None) if self.keeper is not None else None
        if known is not None and known.state not in (*OPEN, State.CANCELLED):
            return known
        if (found := await self.gate.broker.about(call.key)) is not None:
            return found
        if self.is_new(ctx):
            return None
        for request in reversed(await self.gate.broker.of_conversation(call.conversation_id)):
            same = request.call is not None and request.call.call_id == call.call_id
            if same and request.call is not None and request.call.fingerprint == call.fingerprint:
                spoken = request.state not in (*OPEN, State.APPROVED, State.CANCELLED)
                return request if spoken or ctx.tool_call_approved else None
        return None

    async def void(self, call: Call, reason: str) -> None:
        """Say on record that an approval comes to nothing, where policy denies the call that it was given for."""
        request = await self.gate.broker.about(call.key)
        if request is not None and request.state is State.APPROVED:
            with suppress(RequestError):  # it was spent or withdrawn in the same instant
                await self.gate.broker.cancel(request.id, f"policy denies it: {reason}")

    def raise_for(self, asked: Asked) -> ApprovalRequired:
        """Note a question, and the exception that makes PydanticAI defer the call."""
        request = asked.request
        self.asked[asked.passage.call.key] = asked
        # Metadata reaches traces and every user interface: what the tool itself said, one safe line, and a reference.
        asked.public.update(
            request=request.id,
            reason=request.verdict.reason if request.verdict else "",
            rules=list(request.verdict.rules) if request.verdict else [],
            worker=list(request.worker),
            changed=list(request.changed),
        )
        line = request.title or safe_summary(request, secrets=self.gate.secrets)
        return ApprovalRequired(metadata={"summary": line, **asked.said, REQUEST: asked.public})

    async def open(
        self, ctx: RunContext[Any], asked: Sequence[Asked], deferred: DeferredToolRequests | None = None
    ) -> list[ApprovalRequest]:
        """The requests as they are on record, opening those that are not yet, and saving the run with them."""
        fresh = [one.request for one in asked if one.request.opened_at is None]
        self.gate.broker.notes.hand_over()
        if self.keeper is not None and deferred is not None:
            known = await self.keeper.opened(ctx, fresh, deferred, self.gate.policy, put_down=self.gate.suspends)
        elif self.outer is not None:
            known = await self.outer.opened_inside(fresh, self.gate.policy)
        else:
            known = await self.gate.broker.open(fresh, policy=self.gate.policy)
        opened = {new.id: request for new, request in zip(fresh, known, strict=True)}
        requests: list[ApprovalRequest] = []
        for one in asked:
            request = opened.get(one.request.id) or await self.gate.broker.get(one.request.id)
            if request.id == one.request.id and one.request.opened_at is None:
                self.on_open(one.passage, request)
                self.waiting.add(request.id)
            one.public["request"] = request.id
            self.gate.desk.edits[request.id] = partial(self.check_edit, one.passage, request)
            requests.append(request)
        return requests

    async def answers(self, requests: Sequence[ApprovalRequest]) -> Mapping[str, ApprovalRequest]:
        """Those of the requests that are settled, by id, after waiting as long as this gate waits."""
        if not requests or self.gate.suspends:
            return {}
        settled = await wait_for_answers(self.gate, requests)
        self.waiting.difference_update(settled)
        return settled

    def withdraw(self, reason: str) -> None:
        """The run is over: what it still waited for is moot."""
        asked = {str(one.public["request"]) for one in self.asked.values() if "request" in one.public}
        if open_still := sorted(self.waiting | asked):
            self.gate.broker.stopping.withdraw(open_still, reason)
        self.waiting.clear()
