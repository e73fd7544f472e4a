"""The process that runs a channel is killed while it has a turn in hand; the next one takes it up."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from tests.crash.fork import Child, ForkServer
from tests.wiring.town import ANA, Town, working

from signoff.core.event import CallEvent
from signoff.core.request import State
from signoff.core.run import RunState

TURNS = """\
- calls: [{tool: read_file, args: {path: list.txt}}]
- calls: [{tool: edit_file, args: {path: list.txt, old: eggs, new: eggs eggs}}]
- say: "Noted: {{last}}"
- say: And that was all.
"""
LONG = "and so on " * 100 + "until the end"


@pytest.mark.parametrize(
    ("event", "stood"),
    [("allowed read_file", "died"), ("asked edit_file", "waiting"), ("ran edit_file", "unknown")],
)
def test_whatever_was_in_hand_goes_on_and_the_tool_runs_once(
    fork_server: ForkServer, tmp_path: Path, event: str, stood: str
) -> None:
    told = fork_server.call(f"{__name__}:killed_at", directory=str(tmp_path), event=event)
    assert told["stood"] == stood
    assert told["list"] == "eggs eggs", "edited once"
    assert told["said"][0][0] == "done"
    assert told["said"][1] == ["done", "And that was all."], "the next turn knows the one that was killed"
    assert told["claims"] == 1


def test_a_turn_that_was_heard_and_no_more_is_begun_by_the_next(fork_server: ForkServer, tmp_path: Path) -> None:
    told = fork_server.call(f"{__name__}:killed_at", directory=str(tmp_path), event="heard")
    assert told["stood"] == "ready"
    assert (told["list"], told["claims"]) == ("eggs eggs", 1)


def test_an_answer_that_was_given_and_not_yet_told_is_told_whole(fork_server: ForkServer, tmp_path: Path) -> None:
    assert fork_server.call(f"{__name__}:killed_before_it_is_told", directory=str(tmp_path)) == LONG


# --- in processes of their own ---


def killed_before_it_is_told(directory: str) -> str:
    """A process dies as the run is over and nobody was told; what the next one shows of it at last."""
    os.chdir(directory)
    Town(Path(directory)).write(talker=f"- say: {LONG}\n")

    async def dies() -> None:
        town = Town(Path(directory))

        async def say(*told: Any, **more: Any) -> list[str]:
            _die()
            return []

        town.open()
        town.post.say = say
        await town.says("tell me")
        await town.running.resumer.look()
        await town.running.idle()

    async def told() -> str:
        async with working(Town(Path(directory))) as town:
            [run] = await town.runs()
            assert run.state is RunState.DONE
            while (told := await town.told()).text != LONG:
                assert told.text == run.detail
        return told.text

    first = Child(lambda: asyncio.run(dies()))
    first.wait()
    assert first.status == -signal.SIGKILL
    return Child(lambda: asyncio.run(told())).wait()


def killed_at(directory: str, event: str) -> dict[str, Any]:
    """A process begins a turn and dies there, or dies as it goes on with it; another one takes it up."""
    os.chdir(directory)
    Town(Path(directory)).write(talker=TURNS)
    Path("notes/list.txt").write_text("eggs")
    first = Child(_dies, directory, event)
    first.wait()
    assert first.status == -signal.SIGKILL
    return Child(_takes_up, directory).wait()


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _dies(directory: str, event: str) -> None:
    def observe(step: CallEvent) -> None:
        if f"{step.what} {step.call.tool}" == event:
            _die()

    async def work() -> None:
        town = Town(Path(directory))
        if event == "heard":
            with town.at_work():
                await town.says("note more eggs")
                _die()
        async with working(town, observe=observe):
            await town.says("note more eggs")
            await town.answer()
            await town.told()

    asyncio.run(work())


def _takes_up(directory: str) -> dict[str, Any]:
    async def work() -> dict[str, Any]:
        town = Town(Path(directory))
        with town.at_work():
            await town.broker.sweep()
            [status] = await town.broker.runs.list(going=True)
            lost = [one for one in status.waiting if one.state is State.UNKNOWN]
        async with working(town):
            if lost:
                assert town.note("list.txt") == "eggs eggs"
                await town.broker.tell(lost[0].id, happened=True, by=ANA)
            else:
                await town.answer()
            said = [await town.told()]
            await town.says("and?", number=2_000)
            said.append(await town.told())
            entries = await town.store.read(lambda tx: tx.record.entries())
            runs = await town.runs()
        assert [run.state for run in runs] == [RunState.DONE, RunState.DONE]
        return {
            "stood": "unknown" if lost else status.word,
            "list": town.note("list.txt"),
            "said": [[str(one.state), one.text] for one in said],
            "claims": sum(entry.kind == "claimed" for entry in entries),
        }

    return asyncio.run(work())
