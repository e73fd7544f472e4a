"""Ask about calls that an agent deferred through a broker, and hand the answers to the program that runs the agent.

An agent without a gate defers natively, and its program continues with `DeferredToolResults`. No gate is there when
the tool runs. So an approval is used when it is handed over: once, and on record before the program has it.

A request outlives the program, like every other. A program that asks about the same call in the same conversation
again finds it, by the call's id, tool and arguments.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolApproved, ToolDefinition, ToolDenied

from signoff.broker import Broker, new_id
from signoff.core.card import safe_summary
from signoff.core.decision import ApprovalDecision
from signoff.core.grant import Grant
from signoff.core.request import ApprovalRequest, State
from signoff.core.verdict import Effect, Requirement, Verdict
from signoff.errors import WrongUse
from signoff.gate.answers import GateAnswers
from signoff.gate.capability import Signoff
from signoff.gate.deferred_tools import build_approval_requests, result_of
from signoff.gate.denial import denial
from signoff.gate.gate import TOOL_ASKS
from signoff.gate.options import rooted
from signoff.gate.questions import REQUEST, secrets_in
from signoff.gate.refusal_words import POLICY, SIGNOFF
from signoff.gate.remembered_answers import OwnMemory, StoreMemory
from signoff.gate.tools import CallReader
from signoff.policy.engine import Policy
from signoff.policy.joint_requirement import together
from signoff.policy.layers import Layers
from signoff.policy.strictest_verdict import strictest
from signoff.store.approval_memory import ApprovalMemory

_STILL_SPEAKS = (State.PENDING, State.APPROVED, State.DENIED)
"""States of an earlier request about the same call that is not asked again: it waits, its answer was not taken yet,
or a person denied it."""
_GONE = "the program that asked is gone"
_SPENT = "the approval of this call was already handed over, and is valid once"


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """Asks about deferred calls, and hands out the answers."""

    answers: GateAnswers
    reader: CallReader
    secrets: tuple[str, ...] = ()
    actors: Requirement | None = None
    """What every question requires besides what the rules say."""

    @classmethod
    def under(cls, signoff: Signoff) -> Handover:
        """Use the rules of a gate, for agents that have none."""
        gate = signoff.gate
        return cls(answers=gate.answers, reader=gate.reader, secrets=gate.secrets, actors=gate.actors)

    @classmethod
    def over(cls, broker: Broker, policies: Sequence[Policy]) -> Handover:
        """Use the rules of a project."""
        policy = rooted(policies[0] if len(policies) == 1 else Layers(tuple(policies)))
        reader = CallReader(policy=policy, root=policy.root or os.sep)
        memory = StoreMemory(broker, reader.read_for_memory) if broker.remembers else OwnMemory(ApprovalMemory(None))
        return cls(answers=GateAnswers(broker, memory, policy), reader=reader)

    @property
    def broker(self) -> Broker:
        return self.answers.broker

    async def results(
        self,
        deferred: DeferredToolRequests,
        *,
        conversation: str,
        places: Mapping[str, str],
        worker: Sequence[str] = (),
        tools: Mapping[str, ToolDefinition] | None = None,
        requester: str = "",
    ) -> DeferredToolResults:
        """Return an answer for every call that waits for approval, once all have one.

        `conversation` identifies what they belong to. `places` say where people are asked, by channel. With `tools`,
        people may edit the arguments, which are checked against the tool's schema.
        """
        # Only a gate sets this key, or code that pretends to be one: the claim is not trusted here.
        if any(REQUEST in deferred.metadata.get(one.tool_call_id, {}) for one in deferred.approvals):
            raise WrongUse(_HAS_GATE)
        results = DeferredToolResults()
        asked: dict[str, str] = {}
        fresh: list[ApprovalRequest] = []
        for request in build_approval_requests(deferred, worker=worker, tools=tools):
            made = self._made(request, conversation, tools or {}, requester)
            if (refused := self._refused(made)) is not None:
                results.approvals[request.tool_call_id] = refused
            elif (known := await self._known(made)) is not None:
                asked[request.tool_call_id] = known.id
            elif (grant := await self.answers.recall(made)) is not None:
                remembered = ApprovalDecision(approved=grant.approved, note=grant.note)
                self._record("remembered", made, grant=grant)
                results.approvals[request.tool_call_id] = result_of(made, remembered)
            else:
                fresh.append(made)
                asked[request.tool_call_id] = made.id
        await self.broker.open(fresh, policy=self.answers.policy, places=places)
        settled = await self._settled(list(asked.values()))
        approved = [one.id for one in settled.values() if one.state is State.APPROVED]
        taken = {one.id for one in await self.broker.hand_over(approved)}
        for call_id, request_id in asked.items():
            results.approvals[call_id] = _handed(settled[request_id], taken)
        return results

    def _made(
        self, request: ApprovalRequest, conversation: str, tools: Mapping[str, ToolDefinition], requester: str
    ) -> ApprovalRequest:
        """Return the request about a call, as a gate would ask it."""
        assert request.call is not None, "whatever builds it says what it is about"
        call = self.reader.reread(request.call.changed(conversation_id=conversation, run_id=new_id()))
        tool = tools.get(request.tool_name)
        made = replace(
            request,
            id=new_id(),
            call=call,
            may_vary=self.reader.varying(call),
            verdict=self._verdict(self.answers.policy.judge_layer(call)),
            policy_revision=self.answers.policy.revision,
            schema=tool.parameters_json_schema if tool is not None else None,
            requester=requester,
            root=self.reader.root,
            keeps=self.answers.memory.keeps,
        )
        secrets = secrets_in(made, self.secrets)
        return made.changed_to(secrets=secrets, title=safe_summary(made, secrets=self.secrets))

    def _verdict(self, found: Verdict | None) -> Verdict:
        """Return the stricter verdict of policy and the tool itself, which asks."""
        verdict = strictest([TOOL_ASKS] if found is None else [found, TOOL_ASKS]) or TOOL_ASKS
        if self.actors is None or verdict.effect is not Effect.ASK:
            return verdict
        return replace(verdict, requirement=together((verdict.requirement, self.actors)))

    def _refused(self, request: ApprovalRequest) -> ToolDenied | None:
        """Return the denial if policy denies the call, so that nobody is asked; else None."""
        verdict = request.verdict
        if verdict is None or verdict.effect is not Effect.DENY:
            return None
        self._record("denied", request, by=POLICY)
        return denial(request.tool_name, by=POLICY, reason=verdict.reason)

    def _record(self, kind: str, request: ApprovalRequest, *, by: str = "", grant: Grant | None = None) -> None:
        """Record a call that nobody was asked about."""
        assert request.call is not None, "it was made here"
        buffer = self.broker.audit_buffer
        buffer.add(kind, request.call, request.verdict, by=by, grant=grant, secrets=request.secrets)
        buffer.flush()

    async def _known(self, request: ApprovalRequest) -> ApprovalRequest | None:
        """Return the earlier request about the same call, if it still counts. Cancels one whose binding has changed."""
        assert request.call is not None, "it was made here"
        for known in reversed(await self.broker.of_conversation(request.call.conversation_id)):
            call = known.call
            if call is None or (call.call_id, call.fingerprint) != (request.call.call_id, request.call.fingerprint):
                continue
            if known.state is State.DENIED:
                return known
            if known.state not in _STILL_SPEAKS:
                return None
            if not request.binding.changed_since(known.changed_to(decision=None).binding):
                return known
            await self.broker.cancel(known.id, "it was asked again: the policy or the tool has changed since")
            return None
        return None

    async def _settled(self, ids: Sequence[str]) -> Mapping[str, ApprovalRequest]:
        """Wait until all of the requests are settled, and return them by id."""
        try:
            waited = await asyncio.gather(*(self.broker.wait(one) for one in ids))
        except asyncio.CancelledError:
            if not self.broker.store.is_durable:  # otherwise a program that asks again finds them
                self.broker.withdraw(ids, _GONE)
            raise
        return {one.id: one for one in waited}


_HAS_GATE = (
    "the agent has a gate, which asked about this call itself.\n"
    "  Run it in the thread: async with approvals.in_thread(thread): await agent.run(…)"
)


def _handed(request: ApprovalRequest, taken: set[str]) -> ToolApproved | ToolDenied:
    if request.state in (State.DENIED, State.EXPIRED, State.CANCELLED) and request.decision is not None:
        return result_of(request, request.decision)
    if request.id in taken and request.decision is not None:
        return result_of(request, request.decision)
    return denial(request.tool_name, by=SIGNOFF, reason=_SPENT)
