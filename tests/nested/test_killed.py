"""The process dies while an approved call waits for a run inside it."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.crash.fork import Child, ForkServer
from tests.nested.kit import World
from tests.nested.test_calls import ASK_ALL, a_runs_b
from tests.nested.ways import Silent, tell


@pytest.mark.parametrize("unchanged", [False, True], ids=["call_agent", "unchanged"])
def test_an_approved_outer_call_survives_the_process(fork_server: ForkServer, tmp_path: Path, unchanged: bool) -> None:
    told = fork_server.call(f"{__name__}:killed_inside", folder=str(tmp_path), unchanged=unchanged)
    assert told["did"] == ["ask_b", "pay b 1"]
    assert told["states"] == ["succeeded", "succeeded"]
    assert told["kinds"] == "asked voted settled claimed entered paused claimed entered left ran".split()


def killed_inside(folder: str, unchanged: bool) -> dict[str, Any]:
    """The outer call is approved, its process killed while the run inside waits in place; others answer and go on."""
    hears, tells = os.pipe()
    first = Child(_waits_in_place, folder, unchanged, tells)
    for path in ("a-1", "a-1/b-1"):
        assert os.read(hears, 1)
        if path == "a-1/b-1":
            os.kill(first.pid, signal.SIGKILL)
            first.wait()
        Child(_answers, folder, path).wait()
    return Child(_goes_on, folder, unchanged).wait()


def _world(folder: str, unchanged: bool) -> World:
    world = World(Path(folder), lambda world: a_runs_b(world, unchanged=unchanged, rules=ASK_ALL))
    world.defaults = {"nested": unchanged}
    return world


def _waits_in_place(folder: str, unchanged: bool, tells: int) -> None:
    world = _world(folder, unchanged)
    world.defaults |= {"wait": "inline", "approver": Silent(lambda: tell(tells))}
    asyncio.run(world.begin())


def _answers(folder: str, path: str) -> None:
    asyncio.run(World(Path(folder)).answer(path))


def _goes_on(folder: str, unchanged: bool) -> dict[str, Any]:
    async def work() -> dict[str, Any]:
        world = _world(folder, unchanged)
        assert "b paid 1" in await world.go_on()
        requests = await world.ended()
        kinds = await world.kinds(requests[0].id)
        return {"did": world.did, "states": [str(one.state) for one in requests], "kinds": kinds}

    return asyncio.run(work())
