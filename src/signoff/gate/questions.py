"""The questions of one run: what it asks, what is on record about its calls, and the wait for answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ApprovalRequired

from signoff.core.call import Call
from signoff.core.card import safe_summary
from signoff.core.request import ApprovalRequest, State
from signoff.gate.gate import Gate
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
    asked: dict[str, Asked] = field(default_factory=dict[str, Asked])
    """By call key, whatever was asked in this run, answered or not."""
    waiting: set[str] = field(default_factory=set[str])
    """Ids of requests this run opened and that have no answer yet."""
    parked: bool = False
    """Whether the run leaves requests unanswered, so that it has to suspend."""
    _record: dict[str, str] | None = None
    """Call key -> id of the newest request on record, for this conversation."""
    _spoken_of: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    """(call id, fingerprint) -> id of the newest request: a second way to find a call that claims to be approved."""

    async def record(self, ctx: RunContext[Any]) -> Mapping[str, str]:
        """What is on record for the conversation, read once a run."""
        if self._record is None:
            self._record = {}
            for request in await self.gate.broker.of_conversation(ctx.conversation_id or ""):
                if request.call is not None:
                    self._record[request.call.key] = request.id
                    self._spoken_of[request.call.call_id, request.call.fingerprint] = request.id
        return self._record

    async def about(self, ctx: RunContext[Any], call: Call) -> ApprovalRequest | None:
        """The newest request about a call.

        A resumed call whose history was trimmed or rewritten may have lost its place. Then a request about the same
        call id and arguments speaks for it: a person's no, and a spent approval, are not lost that way.
        """
        record = await self.record(ctx)
        request_id = record.get(call.key)
        if request_id is None and ctx.tool_call_approved:
            request_id = self._spoken_of.get((call.call_id, call.fingerprint))
        return await self.gate.broker.get(request_id) if request_id is not None else None

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
        line = safe_summary(request, secrets=self.gate.secrets)
        return ApprovalRequired(metadata={"summary": line, **asked.said, REQUEST: asked.public})

    async def open(self, asked: Sequence[Asked]) -> list[ApprovalRequest]:
        """The requests as they are on record, opening those that are not yet."""
        record = self._record = self._record if self._record is not None else {}
        fresh = [one for one in asked if record.get(one.passage.call.key) != one.request.id]
        opened = await self.gate.broker.open([one.request for one in fresh])
        for one, request in zip(fresh, opened, strict=True):
            if request.id == one.request.id:
                self.on_open(one.passage, request)
                self.waiting.add(request.id)
            one.public["request"] = record[one.passage.call.key] = request.id
        requests = [await self.gate.broker.get(record[one.passage.call.key]) for one in asked]
        for one, request in zip(asked, requests, strict=True):
            self.gate.desk.edits[request.id] = self._edit_check(one.passage)
        return requests

    def _edit_check(self, passage: Passage) -> Callable[[Mapping[str, Any]], Awaitable[Mapping[str, Any]]]:
        async def check(args: Mapping[str, Any]) -> Mapping[str, Any]:
            return await passage.check_edit(
                args, lambda call: self.gate.verdict(passage.ctx, passage.tool.tool_def, call, passage.owner)
            )

        return check

    async def answers(self, requests: Sequence[ApprovalRequest]) -> Mapping[str, ApprovalRequest]:
        """Those of the requests that are settled, by id, after waiting as long as this gate waits."""
        if not requests or self.gate.suspends:
            return {}
        settled = await wait_for_answers(self.gate, requests)
        self.waiting.difference_update(settled)
        return settled

    async def withdraw(self, reason: str) -> None:
        """The run is over: what it still waited for is moot."""
        for request_id in self.waiting:
            request = await self.gate.broker.get(request_id)
            if request.state is State.PENDING:
                await self.gate.broker.cancel(request_id, reason)
        self.waiting.clear()
