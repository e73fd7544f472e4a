"""Talks: turns that follow each other in one place, one at a time, and nothing heard twice."""

from __future__ import annotations

import asyncio

import pytest
from tests.broker.conftest import Opens, ask

from signoff.broker import Broker
from signoff.core.decision import ApprovalDecision
from signoff.core.people import Actor
from signoff.core.run import RunSetup, RunState, SavedRun
from signoff.errors import AlreadyHeard, Halted, HeardTooLate, RunOver, RunTaken, WrongUse

THREAD = "discord:77"


def turn(run: str, agent: str = "worker:talker") -> SavedRun:
    return SavedRun(id=run, agent=agent, prompt="go", conversation_id=f"talk of {run}", setup=RunSetup(chat=True))


async def end(broker: Broker, run: str, state: RunState = RunState.DONE, *, whole: bool = True) -> None:
    """The run ends; its conversation is kept, or not."""
    taken = await broker.runs.take(run)
    if whole:
        await broker.store.write("save", lambda tx: tx.runs.put(taken.changed(rest="{}")))
    await broker.runs.end(run, taken.epoch, state)


async def test_a_turn_follows_the_last_that_was_brought_to_an_end(broker: Broker) -> None:
    assert await broker.runs.last_turn(THREAD) is None
    one = await broker.runs.begin(turn("run1"), conversation=THREAD, heard="5", put_down=True)
    assert (one.holder, one.setup.after, one.conversation_id) == ("", "", "talk of run1")
    await end(broker, "run1")
    two = await broker.runs.begin(turn("run2"), conversation=THREAD, heard="6", put_down=True)
    assert (two.setup.after, two.conversation_id) == ("run1", "talk of run1")
    await end(broker, "run2", RunState.FAILED, whole=False)
    three = await broker.runs.begin(turn("run3"), conversation=THREAD, heard="7")
    assert three.setup.after == "run1", "nothing can follow one that failed"
    assert three.holder == broker.process.id
    assert (await broker.runs.last_turn(THREAD) or one).id == "run3"
    assert await broker.runs.last_turn("discord:78") is None


async def test_each_agent_has_a_conversation_of_its_own(broker: Broker) -> None:
    for run, agent, after in (("a1", "a", None), ("b1", "b", None), ("a2", "a", "a1"), ("b2", "b", "b1")):
        begun = await broker.runs.begin(turn(run, agent), conversation=THREAD)
        assert begun.setup.after == (after or "")
        await end(broker, run)


async def test_one_turn_at_a_time(broker: Broker) -> None:
    await broker.runs.begin(turn("run1"), conversation=THREAD, heard="5")
    with pytest.raises(RunTaken, match=r"^run run1 is still running$"):
        await broker.runs.begin(turn("run2"), conversation=THREAD, heard="6")
    request = await ask(broker, run="run1")
    with pytest.raises(RunTaken, match=r"^run run1 waits for an answer$"):
        await broker.runs.begin(turn("run2"), conversation=THREAD, heard="7")
    await broker.answer(request, ApprovalDecision(approved=False), by=Actor(name="ana"))
    await broker.runs.cancel("run1", by="ana")
    with pytest.raises(AlreadyHeard):  # whoever said it was told that it does not begin
        await broker.runs.begin(turn("run2"), conversation=THREAD, heard="7")
    assert (await broker.runs.begin(turn("run2"), conversation=THREAD, heard="8")).setup.after == ""


async def test_of_many_that_begin_at_once_one_does(another: Opens) -> None:
    brokers = [another() for _ in range(8)]
    begun = await asyncio.gather(
        *(one.runs.begin(turn(f"run{number}"), conversation=THREAD) for number, one in enumerate(brokers)),
        return_exceptions=True,
    )
    assert sorted(type(one).__name__ for one in begun) == [*["RunTaken"] * 7, "SavedRun"]
    assert len(await brokers[0].runs.list()) == 1


async def test_what_was_heard_begins_nothing_again(broker: Broker) -> None:
    await broker.runs.begin(turn("run1"), conversation=THREAD, heard="999")
    with pytest.raises(AlreadyHeard):
        await broker.runs.begin(turn("run2"), conversation=THREAD, heard="999")
    await end(broker, "run1")
    with pytest.raises(AlreadyHeard):
        await broker.runs.begin(turn("run2"), conversation=THREAD, heard="999")
    await broker.runs.begin(turn("run2"), conversation=THREAD, heard="1000")  # a number, not a text
    with pytest.raises(WrongUse, match="must be a number, not 'x'"):
        await broker.runs.begin(turn("run3"), conversation=THREAD, heard="x")
    log = await broker.store.read(lambda tx: tx.conversations.get(THREAD))
    assert log is not None and log.heard == "1000"


async def test_what_was_said_before_something_newer_comes_too_late_and_is_known_then(broker: Broker) -> None:
    await broker.runs.begin(turn("run1"), conversation=THREAD, heard="999")
    await end(broker, "run1")
    with pytest.raises(HeardTooLate, match="message 998 arrived after message 999"):
        await broker.runs.begin(turn("run2"), conversation=THREAD, heard="998")
    with pytest.raises(AlreadyHeard):  # the same one, told twice
        await broker.runs.begin(turn("run2"), conversation=THREAD, heard="998")
    await broker.runs.begin(turn("run2"), conversation=THREAD, heard="1000")
    await end(broker, "run2")
    with pytest.raises(AlreadyHeard):
        await broker.runs.begin(turn("run3"), conversation=THREAD, heard="999")


async def test_only_the_last_numbers_are_kept(broker: Broker) -> None:
    await broker.runs.begin(turn("run1"), conversation=THREAD, heard="1")
    for heard in range(2, 100):
        with pytest.raises(RunTaken):
            await broker.runs.begin(turn("run2"), conversation=THREAD, heard=str(heard))
    log = await broker.store.read(lambda tx: tx.conversations.get(THREAD))
    assert log is not None and list(log.recent) == [str(one) for one in range(50, 100)]


async def test_what_a_run_came_to_keeps_its_lines_and_says_on_one_that_it_is_over(broker: Broker) -> None:
    run = await broker.runs.begin(turn("run1"))
    await broker.runs.end("run1", run.epoch, RunState.DONE, "first\nsecond \x1b[2J")
    assert (await broker.runs.get("run1")).detail == "first\nsecond ⟦ESC⟧[2J"
    with pytest.raises(RunOver, match=r"^run run1 is done: first second"):
        await broker.runs.take("run1")


async def test_nothing_begins_while_halted(broker: Broker) -> None:
    await broker.switch.halt(by="ana")
    with pytest.raises(Halted):
        await broker.runs.begin(turn("run1"), conversation=THREAD, heard="5")
    await broker.switch.unhalt(by="ana")
    assert (await broker.runs.begin(turn("run1"), conversation=THREAD, heard="5")).id == "run1"
