"""Together with the harness's SubAgents: a sub-agent's question outlives the process, with no change to either."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from tests.crash.fork import Child, ForkServer
from tests.nested.kit import NO, YES, World, calls, waits

subagents = pytest.importorskip("pydantic_ai_harness.subagents", reason="pydantic-ai-harness is not installed")

RULES = [{"allow": ["look*", "delegate_task"]}, {"ask": "pay*"}]
"""What the tool is called comes from the harness."""


def build(world: World) -> Agent[Any, Any]:
    """An agent that hands a task to a sub-agent, which pays."""
    world.defaults = {"nested": True}
    b = world.payer("b", 1, gate=world.gate(RULES))
    others = subagents.SubAgents(agents=[subagents.SubAgent(b)], agent_folders=None)
    turns = calls(("delegate_task", {"agent_name": "b", "task": "pay what we owe"}, "a-1"))
    return world.agent("a", turns, gate=world.gate(RULES), beside=[others])


def check(world: World, output: str, *, approved: bool) -> None:
    assert [one for one in world.did if one.startswith("pay")] == (["pay b 1"] if approved else [])
    assert ("b paid 1" if approved else "not today") in output
    assert world.turns_of("a") == world.turns_of("b") == [0, 1]


@pytest.mark.parametrize("decision", [YES, NO], ids=["approve", "deny"])
async def test_a_sub_agents_question_suspends_the_run(world: World, decision: Any) -> None:
    world.build = build
    assert waits(await world.begin())
    [request] = (await world.pending()).values()
    assert request.call is not None
    assert request.call.chain == "a > b > pay_b"
    assert request.call.path == "a-1/b-1"
    await world.answer(decision=decision)
    check(world, await world.go_on(), approved=decision is YES)
    assert world.did.count("look b") == 1
    await world.ended()


@pytest.mark.parametrize("approved", [True, False], ids=["approve", "deny"])
def test_a_sub_agents_question_outlives_the_process(fork_server: ForkServer, tmp_path: Path, approved: bool) -> None:
    fork_server.call(f"{__name__}:restarted", directory=str(tmp_path), approved=approved)


def restarted(directory: str, approved: bool) -> None:
    """One process begins, one answers, one goes on."""
    for step in (begins, answers, goes_on):
        Child(step, directory, approved).wait()


def begins(directory: str, approved: bool) -> None:
    world = World(Path(directory), build)
    assert waits(asyncio.run(world.begin()))
    assert world.did == ["look b"]


def answers(directory: str, approved: bool) -> None:
    asyncio.run(World(Path(directory)).answer(decision=YES if approved else NO))


def goes_on(directory: str, approved: bool) -> None:
    async def work() -> None:
        world = World(Path(directory), build)
        check(world, await world.go_on(), approved=approved)
        assert "look b" not in world.did
        await world.ended()

    asyncio.run(work())
