"""Realtime sessions (`agent.realtime`): gated like runs, but they cannot pause."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import Agent
from tests.gate.agents import Till
from tests.gate.realtime import Voice, session

from signoff import ApprovalMemory, Signoff
from signoff.errors import Halted, WrongUse
from signoff.testing import ScriptedApprover

pytestmark = pytest.mark.filterwarnings("ignore:.*realtime sessions never call")
PAYS = ("pay", {"amount": 5})


def gate(rules: Any, ui: Any = None, **options: Any) -> Signoff:
    return Signoff(rules, approver=ui, memory=ApprovalMemory(file=None), **options)


@pytest.fixture
def till() -> Till:
    return Till()


async def test_calls_of_a_session_are_judged_and_asked_about_in_place(till: Till) -> None:
    person = ScriptedApprover(["approve", "deny:too much"])
    agent = Agent(tools=[till.pay, till.look], capabilities=[gate([{"allow": "look"}], person)])
    first, second, third = await session(agent, Voice(PAYS, PAYS, ("look", {})))
    assert till.paid == [(5, "shop")] and len(person.asked) == 2
    assert first == "paid 5 to shop" and "too much" in second and third == "100"
    [denied] = await session(Agent(tools=[till.pay], capabilities=[gate([{"deny": "pay"}])]), Voice(PAYS))
    assert "the policy denies" in denied and len(till.paid) == 1


async def test_a_session_cannot_pause_and_says_so(till: Till) -> None:
    signoff = gate([], wait="suspend")
    [said] = await session(Agent(tools=[till.pay], capabilities=[signoff]), Voice(PAYS))
    assert "a realtime session cannot pause for the answer" in said
    assert till.paid == [] and await signoff.pending() == []


async def test_a_session_stops_when_everything_is_halted(till: Till) -> None:
    signoff = gate([{"allow": "pay"}])
    agent = Agent(tools=[till.pay], capabilities=[signoff])
    await signoff.broker.switch.halt(by="ana", why="stop")
    with pytest.raises(Halted, match="stop"):
        await session(agent, Voice(PAYS))
    assert till.paid == []


async def test_an_override_without_the_gate_is_refused_here_too(till: Till) -> None:
    agent = Agent(tools=[till.pay], capabilities=[gate([{"deny": "pay"}])], name="cashier")
    spec = {"capabilities": [{"Thinking": {}}]}
    with agent.override(spec=spec), pytest.raises(WrongUse, match="this run would be without it"):
        await session(agent, Voice(PAYS))
    assert till.paid == []
