"""A run has one gate: of two, one would ask its approver what the other asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.capabilities import WrapperCapability
from tests.gate.agents import calls

from signoff import ApprovalMemory, Signoff
from signoff.errors import WrongUse
from signoff.policy.engine import Policy
from signoff.testing import ScriptedApprover, ScriptedModel

ON_AGENT, FOR_RUN = r"Agent\(capabilities=\[…\]\)", r"run\(capabilities=\[…\]\)"


def gate(effect: str) -> Signoff:
    rules = Policy.from_rules([{effect: "*"}], file=f"{effect}.yaml")
    return Signoff(rules, approver=ScriptedApprover([]), memory=ApprovalMemory(file=None))


def agent(ran: list[str], **options: Any) -> Agent[None, str]:
    def pay() -> str:
        ran.append("pay")
        return "paid"

    return Agent(ScriptedModel([calls(("pay", {})), {"say": "done"}]), tools=[pay], **options)


async def both_on_the_agent(one: Signoff, other: Signoff, ran: list[str]) -> None:
    agent(ran, capabilities=[one, other])


async def one_for_the_run(one: Signoff, other: Signoff, ran: list[str]) -> None:
    await agent(ran, capabilities=[one]).run("go", capabilities=[other])


async def both_for_the_run(one: Signoff, other: Signoff, ran: list[str]) -> None:
    await agent(ran).run("go", capabilities=[one, other])


async def one_made_by_a_function(one: Signoff, other: Signoff, ran: list[str]) -> None:
    await agent(ran, capabilities=[one]).run("go", capabilities=[lambda ctx: other])


async def one_in_a_wrapper(one: Signoff, other: Signoff, ran: list[str]) -> None:
    await agent(ran, capabilities=[one]).run("go", capabilities=[WrapperCapability(other)])


async def the_same_twice(one: Signoff, other: Signoff, ran: list[str]) -> None:
    await agent(ran, capabilities=[one]).run("go", capabilities=[one])


@pytest.mark.parametrize(
    ("way", "places"),
    [
        (both_on_the_agent, (ON_AGENT, ON_AGENT)),
        (one_for_the_run, (ON_AGENT, FOR_RUN)),
        (both_for_the_run, (FOR_RUN, FOR_RUN)),
        (one_made_by_a_function, (ON_AGENT, FOR_RUN)),
        (one_in_a_wrapper, (ON_AGENT, FOR_RUN)),
        (the_same_twice, (ON_AGENT, "")),
    ],
)
@pytest.mark.parametrize("effects", [("allow", "ask"), ("ask", "allow"), ("ask", "ask"), ("ask", "deny")])
async def test_two_gates_on_one_run_are_refused_and_nobody_is_asked(
    way: Callable[..., Any], places: tuple[str, str], effects: tuple[str, str]
) -> None:
    one, other = map(gate, effects)
    ran: list[str] = []
    with pytest.raises(
        WrongUse, match=rf"two Signoff on one run, in {places[0]} \({effects[0]}\.yaml\) and {places[1]}"
    ):
        await way(one, other, ran)
    asked = [request for each in (one, other) for request in each.approver.asked]
    assert (asked, ran) == ([], [])


async def test_a_gate_that_takes_the_place_of_the_agents_own_is_the_only_one() -> None:
    ran: list[str] = []
    own, other = gate("deny"), gate("allow")
    gated = agent(ran, capabilities=[own])
    with gated.override(spec={"capabilities": ["ToolSearch"]}):
        await gated.run("go", capabilities=[other])
    assert ran == ["pay"]
