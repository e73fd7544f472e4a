"""Ways in which a run could be without its agent's gate: it is refused, or the gate is there all the same."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.agent import WrapperAgent
from pydantic_ai.capabilities import AbstractCapability, CombinedCapability, Thinking, Toolset, WrapperCapability
from pydantic_ai.toolsets import FunctionToolset
from tests.gate.agents import Till, agent_with, pays, returns

from signoff import ApprovalMemory, Signoff
from signoff.errors import WrongUse
from signoff.testing import ScriptedModel

DENY = [{"deny": "pay", "reason": "never"}]
WITHOUT: dict[str, dict[str, Any]] = {
    "another capability": {"spec": {"capabilities": [{"Thinking": {}}]}},
    "another, and instructions": {"spec": {"capabilities": [{"Thinking": {}}], "instructions": "Pay."}},
    "a whole spec": {"spec": {"model": "test", "capabilities": ["Thinking"], "retries": 2}},
    "other toolsets": {"spec": {"capabilities": [{"Thinking": {}}]}, "toolsets": []},
}


def gate(rules: Any = DENY) -> Signoff:
    return Signoff(rules, approver=lambda request: False, memory=ApprovalMemory(file=None))


@pytest.fixture
def till() -> Till:
    return Till()


async def by_run(agent: Agent[Any, Any], **options: Any) -> list[tuple[str, Any]]:
    return returns((await agent.run("go", **options)).all_messages())


async def by_iter(agent: Agent[Any, Any], **options: Any) -> list[tuple[str, Any]]:
    async with agent.iter("go", **options) as run:
        async for _ in run:
            pass
    assert run.result is not None
    return returns(run.result.all_messages())


async def by_stream(agent: Agent[Any, Any], **options: Any) -> list[tuple[str, Any]]:
    async with agent.run_stream("go", **options) as stream:
        await stream.get_output()
    return returns(stream.all_messages())


RUNS = {"run": by_run, "iter": by_iter, "stream": by_stream}


@pytest.mark.parametrize("run", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("override", WITHOUT.values(), ids=WITHOUT)
async def test_an_override_that_takes_the_gate_away_is_refused(
    till: Till, override: dict[str, Any], run: Callable[..., Any]
) -> None:
    agent = agent_with(gate(), pays(5), till)
    with agent.override(**override, model=ScriptedModel(pays(5))):
        with pytest.raises(WrongUse, match=r"cashier was made with Signoff, and this run would be without it"):
            await run(agent)
        [(outcome, _)] = await run(agent, capabilities=[gate()])
        assert outcome == "denied", "a run may have a gate of its own"
        await run(agent, capabilities=[gate([{"allow": "pay"}])])
    assert till.paid == [(5, "shop")]
    [(outcome, _)] = await run(agent)
    assert outcome == "denied", "and afterwards the gate is back"


KEEPS: dict[str, dict[str, Any]] = {
    "model": {"model": ScriptedModel(pays(5))},
    "instructions": {"instructions": "Pay."},
    "name": {"name": "other"},
    "native tools": {"native_tools": []},
    "retries": {"retries": 3},
    "settings": {"model_settings": {"temperature": 0}},
    "a spec without capabilities": {"spec": {"instructions": "Pay."}},
    "toolsets": {"toolsets": []},
}


@pytest.mark.parametrize("override", KEEPS.values(), ids=KEEPS)
async def test_any_other_override_leaves_the_gate(till: Till, override: dict[str, Any]) -> None:
    agent = agent_with(gate(), pays(5), till)
    with agent.override(**override):
        assert [outcome for outcome, _ in await by_run(agent)] == ["denied"]
    assert till.paid == []


async def test_other_tools_are_judged_too(till: Till) -> None:
    agent = agent_with(gate(), pays(5), till)
    more: list[dict[str, Any]] = [{"tools": [till.pay]}, {"tools": [], "toolsets": [FunctionToolset([till.pay])]}]
    for override in more:
        with agent.override(**override):
            assert [outcome for outcome, _ in await by_run(agent)] == ["denied"]
    assert till.paid == []


async def test_what_is_given_to_a_run_is_added(till: Till) -> None:
    agent = agent_with(gate(), pays(5), till)
    options: list[dict[str, Any]] = [
        {"capabilities": []},
        {"capabilities": [Thinking()]},
        {"spec": {"capabilities": [{"Thinking": {}}]}},
        {"toolsets": []},
        {"model": ScriptedModel(pays(5))},
    ]
    for option in options:
        assert [outcome for outcome, _ in await by_run(agent, **option)] == ["denied"]
    assert till.paid == []


class Around(WrapperAgent[Any, Any]):
    """An agent around another one."""


async def test_an_agent_around_another_one_has_its_gate(till: Till) -> None:
    agent = Around(agent_with(gate(), pays(5), till))
    assert [outcome for outcome, _ in await by_run(agent)] == ["denied"]  # pyright: ignore[reportArgumentType]
    with agent.override(spec={"capabilities": [{"Thinking": {}}]}), pytest.raises(WrongUse, match="without it"):
        await agent.run("go")
    assert till.paid == []


async def test_toolsets_that_another_agent_uses_too_are_its_own_affair(till: Till) -> None:
    """Only the agent that was made with the gate is held to it."""
    gated = agent_with(gate(), pays(5), till)
    other = Agent(ScriptedModel(pays(7)), toolsets=gated.toolsets)
    assert [outcome for outcome, _ in await by_run(other)] == ["success"]
    assert till.paid == [(7, "shop")]


class Empty(WrapperCapability[Any]):
    """Passes nothing on to what it wraps that would put a gate around the tools."""

    def get_wrapper_toolset(self, toolset: Any) -> Any:
        return None


def later(signoff: Signoff) -> Any:
    return CombinedCapability[Any]([Thinking(), signoff], id="later", defer_loading=True, description="Later.")


HIDDEN: dict[str, Callable[[Signoff], Any]] = {
    "wrapped": WrapperCapability,
    "wrapped by one that passes nothing on": Empty,
    "combined": lambda signoff: CombinedCapability([Thinking(), signoff]),
    "combined twice": lambda signoff: CombinedCapability([CombinedCapability([signoff]), Thinking()]),
    "made for each run": lambda signoff: lambda ctx: signoff,
    "loaded later": later,
}


@pytest.mark.parametrize("hide", HIDDEN.values(), ids=HIDDEN)
async def test_a_gate_inside_another_capability_judges_or_refuses(till: Till, hide: Callable[[Signoff], Any]) -> None:
    agent = Agent(ScriptedModel(pays(5)), tools=[till.pay], capabilities=[hide(gate())])
    with suppress(WrongUse):
        assert [outcome for outcome, _ in await by_run(agent)] == ["denied"]
    assert till.paid == []


async def test_a_capability_that_brings_the_tools_is_judged(till: Till) -> None:
    agent = Agent(ScriptedModel(pays(5)), capabilities=[Toolset(FunctionToolset([till.pay])), gate()])
    assert [outcome for outcome, _ in await by_run(agent)] == ["denied"]
    assert till.paid == []


async def test_an_agent_without_a_gate_is_none_of_our_business(till: Till) -> None:
    agent = Agent(ScriptedModel(pays(5)), tools=[till.pay], capabilities=[AbstractCapability[Any]()])
    with agent.override(spec={"capabilities": [{"Thinking": {}}]}, model=ScriptedModel(pays(5))):
        assert [outcome for outcome, _ in await by_run(agent)] == ["success"]
    assert [outcome for outcome, _ in await by_run(agent, capabilities=[gate()])] == ["denied"]
    with agent.override(spec={"capabilities": [{"Thinking": {}}]}, model=ScriptedModel(pays(5))):
        assert [outcome for outcome, _ in await by_run(agent)] == ["success"], "a gate for one run binds no other"
