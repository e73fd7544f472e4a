"""The whole story: three levels, a question at each, asked, answered and gone on with by processes of their own."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.crash.fork import Child, ForkServer
from tests.nested.cells import NOTE
from tests.nested.kit import YES, World, waits
from tests.nested.test_several import PATHS, three_levels

from signoff import ApprovalDecision

HOW = pytest.mark.parametrize("unchanged", [False, True], ids=["call_agent", "unchanged"])


@HOW
@pytest.mark.mission("D9")
def test_d9_a_nested_workers_request_outlives_its_process(
    fork_server: ForkServer, tmp_path: Path, unchanged: bool
) -> None:
    told = fork_server.call(f"{__name__}:story", directory=str(tmp_path), unchanged=unchanged)
    asked, ran = told["asked"], told["ran"]
    assert asked == {"a-2": "a > pay_a", "a-1/b-1": "a > b > pay_b", "a-1/b-2/c-3": "a > b > c > pay_c"}
    assert ran == [
        ["ask_b", "look a", "look b", "ask_c", "look c"],
        ["ask_b", "pay b 2", "ask_c"],
        ["ask_b", "ask_c", "pay c 7"],
    ], "each process did what was new, and entered the calls that waited"
    assert "c paid 7" in told["output"] and NOTE in told["output"]


def story(directory: str, unchanged: bool) -> dict[str, Any]:
    """Five processes, one after the other; none knows anything of the others but the store."""
    first = Child(in_process, directory, unchanged, "begin").wait()
    Child(in_process, directory, unchanged, "answer_one").wait()
    second = Child(in_process, directory, unchanged, "go_on").wait()
    Child(in_process, directory, unchanged, "answer_the_rest").wait()
    third = Child(in_process, directory, unchanged, "end").wait()
    ran = [sorted_as_made(one["did"]) for one in (first, second, third)]
    return {"asked": first["asked"], "ran": ran, "output": third["output"]}


def sorted_as_made(did: list[str]) -> list[str]:
    """What calls that were made side by side did, in an order that does not depend on chance."""
    order = ["ask_b", "look a", "pay b 2", "look b", "ask_c", "look c", "pay c 7"]
    return sorted(did, key=lambda one: order.index(one) if one in order else len(order))


def in_process(directory: str, unchanged: bool, does: str) -> Any:
    world = World(Path(directory), lambda world: three_levels(world, unchanged=unchanged))
    world.defaults = {"nested": unchanged}
    work = {"begin": _begin, "answer_one": _answer_one, "go_on": _go_on, "answer_the_rest": _answer_rest, "end": _end}
    return asyncio.run(work[does](world))


async def _begin(world: World) -> dict[str, Any]:
    assert waits(await world.begin())
    asked = {path: one.call.chain for path, one in (await world.pending()).items() if one.call}
    world.close()
    return {"asked": asked, "did": world.did}


async def _answer_one(world: World) -> None:
    await world.answer("a-1/b-1", YES)
    world.close()


async def _go_on(world: World) -> dict[str, Any]:
    assert waits(await world.go_on())
    assert set(await world.pending()) == set(PATHS) - {"a-1/b-1"}
    world.close()
    return {"did": world.did}


async def _answer_rest(world: World) -> None:
    await world.answer("a-1/b-2/c-3", ApprovalDecision(approved=True, edited_args={"amount": 7}))
    await world.answer("a-2", ApprovalDecision(approved=False, note=NOTE))
    world.close()


async def _end(world: World) -> dict[str, Any]:
    output = await world.go_on()
    assert '{"amount":7}' in world.heard("c")
    assert NOTE in world.heard("a") and NOTE not in world.heard("b") + world.heard("c")
    assert [world.turns_of(name) for name in "abc"] == [[0, 1]] * 3, "over all processes"
    assert [str(one.state) for one in await world.ended()].count("succeeded") == 2
    world.close()
    return {"did": world.did, "output": output}
