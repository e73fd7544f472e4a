"""What people are told of turns that end, pause or stand still: the truth, whole, and once."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from textwrap import dedent
from typing import Any

import pytest
from tests.wiring.town import PROJECT, Town, working

from signoff.core.event import CallEvent, CallStep
from signoff.core.run import RunState
from signoff.errors import StoreError
from signoff.wiring.job import RunOptions, job_of

TWO = """\
- calls:
  - {tool: write_file, args: {path: a.txt, content: eggs}}
  - {tool: write_file, args: {path: b.txt, content: milk}}
- say: "Both are there."
"""
FAX = '''
from pathlib import Path
from pydantic_ai.exceptions import CallDeferred
from pydantic_ai.toolsets import FunctionToolset

def kit():
    return FunctionToolset([send_fax])

def send_fax(to: str) -> str:
    """Send."""
    sent = Path("faxes")
    sent.write_text((sent.read_text() if sent.exists() else "") + to)
    raise CallDeferred
'''


async def test_an_answer_that_comes_while_the_run_acts_on_another_is_not_its_end(town: Town) -> None:
    town.write(talker=TWO)
    answering: list[asyncio.Task[Any]] = []

    def observe(event: CallEvent) -> None:
        if event.what is CallStep.RAN and not answering:
            answering.append(asyncio.get_running_loop().create_task(town.answer(milk)))

    async with working(town, observe=observe):
        await town.says("note both")
        eggs, milk = sorted([await town.asked(), await town.asked()], key=lambda one: one.args["path"])
        await town.answer(eggs)
        told = await town.told()
        assert (told.state, told.text) == (RunState.DONE, "Both are there.")
        assert answering
        await town.running.idle()
    assert town.thread.told.empty()


@pytest.fixture
def fax(town: Town, monkeypatch: pytest.MonkeyPatch) -> Town:
    """A worker whose tool begins something that is done elsewhere."""
    (town.directory / "faxkit.py").write_text(FAX)
    monkeypatch.syspath_prepend(str(town.directory))
    project = PROJECT.replace("policy: []", "plugins: {allow: [faxkit]}\npolicy: [{allow: {tool: send_fax}}]")
    town.write(
        project.replace("toolsets: {files:", "toolsets: {fax: {use: 'faxkit:kit'}, files:"),
        talker="- calls: [{tool: send_fax, args: {to: bob}}]\n- say: Never.\n",
    )
    worker = town.directory / "workers" / "talker.yaml"
    worker.write_text(worker.read_text().replace("[files]", "[fax]"))
    return town


def sent(town: Town) -> str:
    return (town.directory / "faxes").read_text()


async def test_what_is_done_elsewhere_is_begun_once_and_waited_for(fax: Town) -> None:
    town = fax
    async with working(town):
        await town.says("send it")
        told = await town.told()
        [run] = await town.runs()
        assert told.state is RunState.GOING
        assert "waits for an external result" in told.text and f"signoff cancel {run.id}" in told.text
        town.clock.advance(timedelta(minutes=10))
        await town.running.resumer.look()
        await town.running.idle()
        assert (await town.runs())[0].epoch == 2, "taken up once"
        assert f"run {run.id} is still running" in await town.says("and?")
    async with working(town):
        await town.line("external result")
        await town.running.idle()
        assert town.thread.told.empty(), "said once"
        [run] = await town.runs()
        assert (run.state, sent(town)) == (RunState.GOING, "bob"), "the next process does not send it"
        await town.broker.runs.cancel(run.id, by="ana")


async def test_what_cannot_be_kept_at_once_is_told_all_the_same(town: Town) -> None:
    async with working(town):
        say, failures = town.post.say, 2

        async def fails(*args: Any, **more: Any) -> Any:
            nonlocal failures
            if failures:
                failures -= 1
                raise StoreError("database is locked")
            return await say(*args, **more)

        town.post.say = fails
        await town.says("hi")
        assert "database is locked" in await town.line("its result cannot be reported yet")
        await town.line("its result cannot be reported yet")
        town.clock.advance(1)
        told = await town.told()
        assert (told.state, told.text) == (RunState.DONE, "Hello. What shall I note?")
        await town.running.idle()
        assert town.thread.told.empty()


async def test_something_that_fails_after_the_end_is_not_the_answer(
    town: Town, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*about: Any) -> str:
        monkeypatch.undo()
        monkeypatch.chdir(town.directory)
        raise ValueError("cannot be written")

    monkeypatch.setattr("signoff.wiring.channel_runs.answer_text", fails)
    async with working(town):
        await town.says("hi")
        told = await town.told()
        assert (told.state, told.text) == (RunState.DONE, "Hello. What shall I note?")
        await town.line("cannot be written")


async def test_a_turn_that_somebody_else_ends_is_told_whole(town: Town) -> None:
    text = "first line\nsecond line\n" + "x" * 300
    town.write(
        talker=dedent(f"""\
        - calls: [{{tool: write_file, args: {{path: a.txt, content: eggs}}}}]
        - say: {text!r}
        """).replace("'", '"')
    )
    async with working(town):
        await town.says("hi")
        asked = await town.asked()
        await town.running.idle()
        town.running.at_once = 0
        await town.answer(asked)
        [run] = await town.runs()
        job = job_of(run, RunOptions(store=f"sqlite:{town.directory / 'signoff.db'}", unattended="park"))
        done = await job.resume(run)
        job.close()
        town.clock.advance(timedelta(minutes=1))
        told = await town.told()
        assert (told.state, told.text) == (RunState.DONE, done.output)
        assert told.text == text
        await town.running.idle()
        assert town.thread.told.empty()


async def test_nothing_is_remembered_of_runs_that_are_over(town: Town) -> None:
    async with working(town):
        for at in ("1/", "2/"):
            await town.says("hi", at=at)
            await town.told()
        await town.says("note the eggs", at="1/")
        await town.asked()
        run = (await town.runs())[-1]
        await town.running.idle()
        await town.running.resumer.look()
        assert town.running._turns == {run.id}
        await town.broker.runs.cancel(run.id, by="ana")
        await town.running.resumer.look()
        await town.running.idle()
        town.clock.advance(timedelta(minutes=1))
        assert (await town.told()).state is RunState.CANCELLED
        running = town.running
        assert not (running._turns or running._told or running._here or running.resumer._runs._known)
        assert not town.post.in_hand
