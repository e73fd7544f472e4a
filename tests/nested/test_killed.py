"""The process dies, or its task is cancelled, while an approved call waits for a run inside it."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, RunContext
from tests.crash.fork import Child, ForkServer, heard
from tests.nested.kit import ANA, World, calls, waits
from tests.nested.test_calls import ASK_ALL, a_runs_b
from tests.nested.test_several import runner
from tests.nested.ways import Silent, tell

from signoff import call_agent
from signoff.core.request import ApprovalRequest, State
from signoff.core.run import RunState


def a_waits_for_b(world: World, *, ends_call: bool) -> Agent[Any, Any]:
    """A's tool does nothing but have B do it, and says so or does not; people are asked about both."""
    b = world.payer("b", 1, gate=world.gate(ASK_ALL))

    async def body(ctx: RunContext[Any], question: str) -> str:
        return await call_agent(ctx, b, question, ends_call=ends_call)

    turns = calls(("ask_b", {"question": "?"}, "a-1"))
    return world.agent("a", turns, runner(world, "b", body), gate=world.gate(ASK_ALL))


def test_an_approved_outer_call_that_only_waits_survives_the_process(fork_server: ForkServer, tmp_path: Path) -> None:
    told = fork_server.call(f"{__name__}:killed_inside", directory=str(tmp_path), how="ends_call")
    assert told["did"] == ["ask_b", "pay b 1"]
    assert told["states"] == ["succeeded", "succeeded"]
    assert told["kinds"] == "asked voted settled claimed entered paused claimed entered ran".split()


@pytest.mark.parametrize("how", ["call_agent", "unchanged"])
def test_an_approved_outer_call_that_promised_nothing_is_unknown(
    fork_server: ForkServer, tmp_path: Path, how: str
) -> None:
    told = fork_server.call(f"{__name__}:killed_inside", directory=str(tmp_path), how=how)
    assert told["before"] == [], "nothing is made again before somebody says what became of it"
    assert told["did"] == ["ask_b", "pay b 1"]
    assert told["states"] == ["cancelled", "succeeded", "succeeded"]
    assert told["kinds"] == "asked voted settled claimed unknown told".split()


# --- its task is cancelled ---


async def cancelled_while_b_waits(world: World, *, ends_call: bool) -> ApprovalRequest:
    """A's call is approved, and its task is cancelled while B waits in place; the request about A's call after that."""
    asked = asyncio.Event()
    world.defaults = {"wait": "inline", "approver": Silent(asked.set)}
    world.build = lambda world: a_waits_for_b(world, ends_call=ends_call)
    run = asyncio.ensure_future(world.begin())
    await asyncio.wait_for(asked.wait(), 20)
    asked.clear()
    outer = await world.answer("a-1")
    await asyncio.wait_for(asked.wait(), 20)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    await world.flush()
    assert set(await world.pending()) == {"a-1/b-1"}
    return await world.broker().get(outer.id)


async def test_a_task_that_is_cancelled_loses_nothing_of_the_run_inside(world: World) -> None:
    outer = await cancelled_while_b_waits(world, ends_call=True)
    assert outer.state is State.APPROVED
    await world.answer("a-1/b-1")
    assert "b paid 1" in await world.go_on(), "nobody is asked whether the outer call happened: all it did was wait"
    assert world.did == ["ask_b", "look b", "ask_b", "pay b 1"]
    assert len(await world.ended()) == 2


async def test_a_task_that_is_cancelled_leaves_a_call_unknown_that_did_not_promise_to_wait(world: World) -> None:
    outer = await cancelled_while_b_waits(world, ends_call=False)
    assert outer.state is State.UNKNOWN
    await world.answer("a-1/b-1")
    world.defaults = {}
    assert waits(await world.go_on()), "nobody knows what the tool did besides"
    assert world.did == ["ask_b", "look b"], "so it is not made again, and nothing runs inside it"
    await world.broker().tell(outer.id, happened=False, by=ANA)
    assert waits(await world.go_on())
    assert set(await world.pending()) == {"a-1"}, "asked about again, and only that"
    await world.answer("a-1")
    assert "b paid 1" in await world.go_on()
    assert world.did == ["ask_b", "look b", "ask_b", "pay b 1"]
    assert (await world.run()).state is RunState.DONE


@pytest.mark.parametrize("answered", [True, False], ids=["answered", "open"])
async def test_of_an_unknown_call_that_happened_nothing_inside_goes_on(world: World, answered: bool) -> None:
    outer = await cancelled_while_b_waits(world, ends_call=False)
    if answered:
        await world.answer("a-1/b-1")
    await world.broker().tell(outer.id, happened=True, by=ANA)
    world.defaults = {}
    assert "ana confirmed that this call happened" in await world.go_on()
    assert world.did == ["ask_b", "look b"]
    assert [one.state for one in await world.requests()] == [State.SUCCEEDED, State.CANCELLED]


# --- in processes of their own ---


def killed_inside(directory: str, how: str) -> dict[str, Any]:
    """The outer call is approved, its process killed while the run inside waits in place; others answer and go on."""
    hears, tells = os.pipe()
    first = Child(_waits_in_place, directory, how, tells)
    for path in ("a-1", "a-1/b-1"):
        assert heard(hears, f"the process asks about {path}"), first.wait()
        if path == "a-1/b-1":
            os.kill(first.pid, signal.SIGKILL)
            first.wait()
        Child(_answers, directory, path).wait()
    return Child(_goes_on, directory, how).wait()


def _world(directory: str, how: str) -> World:
    unchanged = how == "unchanged"
    world = World(
        Path(directory),
        lambda world: (
            a_waits_for_b(world, ends_call=True)
            if how == "ends_call"
            else a_runs_b(world, unchanged=unchanged, rules=ASK_ALL)
        ),
    )
    world.defaults = {"nested": unchanged}
    return world


def _waits_in_place(directory: str, how: str, tells: int) -> None:
    world = _world(directory, how)
    world.defaults |= {"wait": "inline", "approver": Silent(lambda: tell(tells))}
    asyncio.run(world.begin())


def _answers(directory: str, path: str) -> None:
    asyncio.run(World(Path(directory)).answer(path))


def _goes_on(directory: str, how: str) -> dict[str, Any]:
    async def work() -> dict[str, Any]:
        world = _world(directory, how)
        output = await world.go_on()
        before = list(world.did)
        for request in await world.requests():
            if request.state is State.UNKNOWN:
                assert waits(output)
                await world.broker().tell(request.id, happened=False, by=ANA)
                assert waits(await world.go_on())
                await world.answer("a-1")
                output = await world.go_on()
        assert "b paid 1" in output
        assert (await world.run()).state is RunState.DONE
        requests = await world.requests() if how != "ends_call" else await world.ended()
        return {
            "before": before,
            "did": world.did,
            "states": sorted(str(one.state) for one in requests),
            "kinds": await world.kinds(requests[0].id),
        }

    return asyncio.run(work())
