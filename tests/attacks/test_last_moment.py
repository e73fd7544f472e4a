"""Attempts to change something between the look at a call and its run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic_ai.capabilities import AbstractCapability
from tests.attacks.kept import Place, gated, paused, turns
from tests.gate.agents import Till, agent_with, returns

from signoff import resume
from signoff.core.request import State
from signoff.errors import RunTaken

ASK = [{"ask": "pay"}]
PAY = turns(("pay", {"amount": 5}))


async def approved(place: Place, till: Till) -> tuple[str, str]:
    """A kept run that waits, and its request, which is approved."""
    signoff = place.gate(ASK, dies=True)
    run = await paused(signoff, gated(signoff, PAY, till.pay))
    [request] = await place.answer()
    return run, request.id


async def test_an_approval_that_another_process_spends_meanwhile_runs_nothing(place: Place) -> None:
    till = Till()
    run, request = await approved(place, till)
    faster = place.broker()

    async def judge(call: Any, ctx: Any) -> None:
        await faster.claim(request)

    result = await resume(gated(place.gate(ASK, judge=judge), PAY, till.pay), run)
    assert till.paid == []
    [(outcome, told)] = returns(result.all_messages())
    assert outcome == "denied" and "has already started" in told


async def test_a_run_that_another_process_takes_up_meanwhile_spends_nothing(place: Place) -> None:
    till = Till()
    run, request = await approved(place, till)
    other = place.broker()

    async def judge(call: Any, ctx: Any) -> None:
        await other.runs.take(run)

    with pytest.raises(RunTaken, match="taken over by another process"):
        await resume(gated(place.gate(ASK, dies=True, judge=judge), PAY, till.pay), run)
    assert till.paid == []
    assert (await other.get(request)).state is State.APPROVED, "whoever has the run now spends it"


async def test_arguments_exchanged_after_the_look_at_the_record_do_not_run(place: Place) -> None:
    till = Till()
    run, _ = await approved(place, till)
    held: list[dict[str, Any]] = []

    class HoldsOn(AbstractCapability[Any]):
        async def before_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: dict[str, Any]) -> Any:
            held.append(args)
            return args

    async def judge(call: Any, ctx: Any) -> None:
        # It happens as soon as the gate waits for something, which is when it takes the approval.
        asyncio.get_running_loop().call_soon(held[-1].update, {"to": "eve"})

    agent = agent_with(place.gate(ASK, judge=judge), PAY, till, suspends=True, capabilities=[HoldsOn()])
    result = await resume(agent, run)
    assert till.paid == []
    [(outcome, told)] = returns(result.all_messages())
    assert held[-1]["to"] == "eve" and outcome == "denied" and "changed while it waited for an answer" in told
