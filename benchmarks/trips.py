"""Every way to get calls asked about, approved and run in memory: with PydanticAI alone, and with signoff."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from pydantic_ai import Agent, RunContext
from pydantic_ai.capabilities import HandleDeferredToolCalls
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults

from benchmarks.agents import Empty, agent, run_whole, tools
from benchmarks.policies import ASK_ALL
from benchmarks.script import DONE, PROMPT, Tally
from signoff import Actor, ApprovalDecision, ApprovalMemory, ApprovalMode, ApprovalRequest, Signoff, resume

BARE = "PydanticAI, nobody is asked"
NATIVE = "PydanticAI, suspended and resumed"
IN_PLACE = "signoff, waits in place"
SUSPENDED = "signoff, suspended and resumed"

_YES = ApprovalDecision(approved=True)


class Approver:
    """Says yes, without waiting for anything."""

    async def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        return _YES


def trips(calls: int) -> dict[str, Callable[[], Awaitable[None]]]:
    """One whole trip of each kind, with that many calls in its batch."""
    tally = Tally()
    plain, by_kind = tools(tally), tools(tally, requires_approval=True)
    by_call = plain.approval_required()
    in_place = Signoff(ASK_ALL, approver=Approver(), memory=ApprovalMemory(None))
    suspending = Signoff(ASK_ALL, wait="suspend", memory=ApprovalMemory(None))

    def whole(made: Agent[Any, Any]) -> Callable[[], Awaitable[None]]:
        return partial(run_whole, made, tally, calls)

    def native(made: Agent[Any, Any]) -> Callable[[], Awaitable[None]]:
        return partial(native_trip, made, tally, calls)

    return {
        BARE: whole(agent(calls, plain)),
        NATIVE: native(agent(calls, by_kind, suspends=True)),
        "the same, by ApprovalRequiredToolset": native(agent(calls, by_call, suspends=True)),
        "the same, and an empty capability": native(agent(calls, by_call, Empty(), suspends=True)),
        "PydanticAI, HandleDeferredToolCalls": whole(agent(calls, by_kind, HandleDeferredToolCalls(_approve_all))),
        IN_PLACE: whole(agent(calls, plain, in_place)),
        SUSPENDED: partial(_our_trip, agent(calls, plain, suspending, suspends=True), suspending, tally, calls),
    }


async def _approve_all(ctx: RunContext[Any], requests: DeferredToolRequests) -> DeferredToolResults:
    return requests.build_results(approve_all=True)


async def native_trip(asking: Agent[Any, Any], tally: Tally, calls: int) -> None:
    paused = await asking.run(PROMPT)
    results = paused.output.build_results(approve_all=True)
    result = await asking.run(message_history=paused.all_messages(), deferred_tool_results=results)
    assert result.output == DONE
    tally.expect(calls)


async def _our_trip(asking: Agent[Any, Any], gate: Signoff, tally: Tally, calls: int) -> None:
    ana = Actor(name="ana", via="api")
    paused = await asking.run(PROMPT)
    for metadata in paused.output.metadata.values():
        await gate.answer(metadata["signoff"]["request"], _YES, by=ana)
    result = await resume(asking, paused)
    assert result.output == DONE
    tally.expect(calls)
