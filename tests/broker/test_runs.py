"""Runs that outlive their process: one process has each in hand, and whoever lost it finds out with the next step."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.broker.conftest import Opens, ask, kill, kinds

from signoff.broker import Broker
from signoff.broker.runs import RunProgress
from signoff.core.decision import ApprovalDecision
from signoff.core.people import Actor
from signoff.core.request import State
from signoff.core.run import FORMAT, RunState, SavedRun, Segment
from signoff.core.verdict import Requirement
from signoff.errors import AlreadySettled, Halted, RunError, RunOver, RunTaken, Stale, StoreError, UnknownRun
from signoff.testing import FakeClock

ANA, YES = Actor(name="ana"), ApprovalDecision(approved=True)
LEASE = timedelta(seconds=40)


async def begun(broker: Broker, run: str = "run1") -> SavedRun:
    return await broker.runs.begin(SavedRun(id=run, agent="app:agent", prompt="go"))


async def word(broker: Broker, run: str = "run1") -> str:
    return (await broker.runs.status(run)).word


async def test_a_new_run_is_in_the_hands_of_who_began_it(broker: Broker, clock: FakeClock) -> None:
    run = await begun(broker)
    assert (run.holder, run.epoch, run.state) == (broker.process.id, 1, RunState.GOING)
    assert run.started_at == run.changed_at == clock.now()
    assert await broker.runs.get("run") == run
    assert await kinds(broker, run="run1") == ["run started"]
    with pytest.raises(StoreError):
        await begun(broker)


# --- taking it up ---


async def test_a_run_that_somebody_has_in_hand_is_not_given_away(another: Opens) -> None:
    one, two = another(), another()
    await begun(one)
    with pytest.raises(RunTaken, match="is already being executed by process"):
        await two.runs.take("run1")
    await one.runs.put_down("run1", 1)
    assert (await two.runs.take("run1")).epoch == 2
    with pytest.raises(RunTaken):
        await one.runs.take("run1")


async def test_a_run_is_taken_from_the_dead(another: Opens) -> None:
    one, two = another(), another()
    await begun(one)
    await kill(one)
    assert await word(two) == "died"
    taken = await two.runs.take("run1")
    assert (taken.epoch, taken.holder) == (2, two.process.id)
    assert await kinds(two, run="run1") == ["run started", "run resumed"]


async def test_a_process_far_away_counts_as_gone_when_it_was_silent_for_long(another: Opens, clock: FakeClock) -> None:
    here, far = another(), another(far=True)
    await begun(far)
    clock.advance(LEASE - timedelta(seconds=1))
    with pytest.raises(RunTaken):
        await here.runs.take("run1")
    far.ledger.beat()
    await far.store.flush()
    clock.advance(LEASE - timedelta(seconds=1))
    with pytest.raises(RunTaken):
        await here.runs.take("run1")
    clock.advance(timedelta(seconds=1))
    assert (await here.runs.take("run1")).epoch == 2
    with pytest.raises(RunTaken, match="was taken over by another process"):
        await far.runs.end("run1", 1, RunState.DONE)


async def test_of_many_that_take_it_up_at_once_one_wins(another: Opens) -> None:
    first, *others = [another() for _ in range(4)]
    await begun(first)
    await first.runs.put_down("run1", 1)
    results = await asyncio.gather(*(one.runs.take("run1") for one in others * 3), return_exceptions=True)
    won = {one.process.id: [] for one in others}
    for broker, result in zip(others * 3, results, strict=True):
        if isinstance(result, SavedRun):
            won[broker.process.id].append(result.epoch)
        else:
            assert isinstance(result, RunTaken)
    winners = [epochs for epochs in won.values() if epochs]
    assert len(winners) == 1, "one process; it may take up again what it has in hand"


async def test_nothing_takes_a_run_up_twice_in_one_process(another: Opens) -> None:
    one, two = another(), another()
    await begun(one)
    with one.runs.in_hand("run1"):
        with pytest.raises(RunTaken, match="executed by this process"):
            await one.runs.take_up("run1")
    await one.runs.put_down("run1", 1)
    taken, _ = await two.runs.take_up("run")
    results = await asyncio.gather(*(two.runs.take_up("run1") for _ in range(3)), return_exceptions=True)
    assert all(isinstance(result, RunTaken) for result in results)
    two.runs.let_go("run1")
    again, _ = await two.runs.take_up("run1")
    assert again.epoch == taken.epoch + 1
    with pytest.raises(RunTaken):
        await one.runs.take_up("run1")
    await two.runs.put_down("run1", again.epoch)
    assert (await one.runs.take_up("run1"))[0].epoch == again.epoch + 1, "being refused leaves nothing in hand"


async def test_taking_up_feeds_time_to_what_it_asked(another: Opens, clock: FakeClock) -> None:
    one, two = another(), another()
    await begun(one)
    slow = await ask(one, "c1", run="run1", need=Requirement(timeout=timedelta(minutes=1)))
    ran = await ask(one, "c2", run="run1")
    await one.answer(ran, YES, by=ANA)
    await one.claim(ran, run="run1", epoch=1)
    await kill(one)
    clock.advance(timedelta(minutes=2))
    _, requests = await two.runs.take_up("run1")
    assert {request.id: request.state for request in requests} == {slow: State.EXPIRED, ran: State.UNKNOWN}


async def test_a_run_saved_in_a_format_from_the_future_is_refused(broker: Broker) -> None:
    await broker.runs.begin(SavedRun(id="run1", format=FORMAT + 1))
    with pytest.raises(UnknownRun, match=f"was saved in format {FORMAT + 1}; this program reads format {FORMAT}"):
        await broker.runs.take("run1")


async def test_a_run_that_does_not_exist(broker: Broker) -> None:
    await begun(broker, "run1")
    await begun(broker, "run2")
    with pytest.raises(RunError, match="more than one run starts with 'run': run1, run2"):
        await broker.runs.get("run")
    for attempt in (broker.runs.get("x"), broker.runs.get(""), broker.runs.take("x"), broker.runs.status("x")):
        with pytest.raises(UnknownRun):
            await attempt
    with pytest.raises(UnknownRun):
        await broker.runs.cancel("x", by="ana")


# --- losing it ---


async def lost(one: Broker, two: Broker) -> None:
    """`one` had the run in hand, and two took it up."""
    await begun(one)
    await one.runs.put_down("run1", 1)
    await two.runs.take("run1")


async def test_whoever_lost_a_run_does_nothing_more_for_it(another: Opens) -> None:
    one, two = another(), another()
    await lost(one, two)
    request = await ask(two, run="run1")
    await two.answer(request, YES, by=ANA)
    for attempt in (
        one.claim(request, run="run1", epoch=1),
        one.runs.put_down("run1", 1),
        one.runs.end("run1", 1, RunState.DONE),
        one.runs.still("run1", 1),
        one.open([], [RunProgress(run=SavedRun(id="run1", epoch=1))]),
    ):
        with pytest.raises(RunTaken):
            await attempt
    one.runs.save_later(lambda: RunProgress(run=SavedRun(id="run1", epoch=1, rest="stale")))
    one.runs.end_later("run1", 1, RunState.FAILED)
    one.runs.put_down_later("run1", 1)
    await one.store.flush()
    kept = await two.runs.get("run1")
    assert (kept.state, kept.holder, kept.epoch, kept.rest) == (RunState.GOING, two.process.id, 2, "")
    assert (await two.claim(request, run="run1", epoch=2)).state is State.CLAIMED


async def test_a_question_and_how_far_the_run_came_are_saved_in_one_go(broker: Broker) -> None:
    await begun(broker)
    segment = Segment(id="s1", parent="", count=1, body=b"hello")
    run = SavedRun(id="run1", epoch=1, tip="s1", rest="{}")
    await broker.open([], [RunProgress(run=run, segments=(segment,), put_down=True)])
    kept = await broker.runs.get("run1")
    assert (kept.tip, kept.rest, kept.holder, kept.agent) == ("s1", "{}", "", "app:agent")
    assert await broker.runs.messages(kept) == [segment]
    lacks = Segment(id="s3", parent="s2", count=1, body=b"x")
    with pytest.raises(Stale):
        await broker.open([], [RunProgress(run=replace(run, tip="s3"), segments=(lacks,))])
    assert (await broker.runs.get("run1")).tip == "s1", "all or nothing"


# --- its end ---


async def questions(broker: Broker) -> dict[str, str]:
    """One of each: pending, approved, denied, claimed, unknown, and one of another run."""
    found = {name: await ask(broker, name, run="run1") for name in ("pending", "approved", "denied", "ran", "lost")}
    await broker.answer(found["denied"], ApprovalDecision(approved=False), by=ANA)
    for name in ("approved", "ran", "lost"):
        await broker.answer(found[name], YES, by=ANA)
    for name in ("ran", "lost"):
        await broker.claim(found[name], run="run1", epoch=1)
    await broker.lose(found["lost"])
    found["another run"] = await ask(broker, "other")
    return found


async def states(broker: Broker, found: dict[str, str]) -> dict[str, State]:
    return {name: (await broker.get(request)).state for name, request in found.items()}


async def test_a_run_that_ends_withdraws_what_it_asked_and_nothing_else(broker: Broker) -> None:
    await begun(broker)
    found = await questions(broker)
    await broker.runs.end("run1", 1, RunState.FAILED, "boom")
    assert await states(broker, found) == {
        "pending": State.CANCELLED,
        "approved": State.CANCELLED,
        "denied": State.DENIED,
        "ran": State.CLAIMED,
        "lost": State.UNKNOWN,
        "another run": State.PENDING,
    }
    kept = await broker.runs.get("run1")
    assert (kept.state, kept.detail, kept.holder) == (RunState.FAILED, "boom", "")
    assert (await kinds(broker, run="run1"))[-3:] == ["settled", "settled", "run ended"]
    assert {item.id for item in await broker.inbox()} == {found["lost"], found["another run"]}


async def test_a_run_that_is_cancelled_is_over_for_whoever_has_it_in_hand(another: Opens) -> None:
    one, two = another(), another()
    await begun(one)
    found = await questions(one)
    cancelled = await two.runs.cancel("run1", by="ben", reason="wrong directory")
    assert (cancelled.state, cancelled.detail) == (RunState.CANCELLED, "ben cancelled the run: “wrong directory”")
    with pytest.raises(AlreadySettled, match="ben cancelled the run: “wrong directory”"):
        await one.claim(found["approved"])
    for attempt in (
        one.claim(found["approved"], run="run1", epoch=1),
        one.runs.end("run1", 1, RunState.DONE),
        one.runs.still("run1", 1),
        two.runs.take("run1"),
        two.runs.take_up("run1"),
        two.runs.cancel("run1", by="eve"),
        ask(one, "new", run="run1"),
    ):
        with pytest.raises(RunOver):
            await attempt
    assert (await kinds(two, run="run1")).count("run ended") == 1


async def test_an_outcome_that_comes_after_the_end_is_kept(broker: Broker) -> None:
    await begun(broker)
    found = await questions(broker)
    await broker.runs.end("run1", 1, RunState.DONE)
    broker.finish(found["ran"])
    broker.finish(found["lost"], error="boom")
    await broker.store.flush()
    after = await states(broker, found)
    assert (after["ran"], after["lost"]) == (State.SUCCEEDED, State.FAILED)


# --- how it stands ---


async def test_how_a_run_stands_in_a_word(another: Opens) -> None:
    one, two = another(), another()
    await begun(one)
    assert await word(two) == "running"
    request = await ask(one, run="run1")
    assert await word(two) == "waiting"
    await one.runs.put_down("run1", 1)
    assert await word(two) == "waiting"
    await two.answer(request, YES, by=ANA)
    assert await word(two) == "ready"
    taken = await one.runs.take("run1")
    assert await word(two) == "running"
    await kill(one)
    assert await word(two) == "died"
    third = another()
    assert (await third.runs.take("run1")).epoch == taken.epoch + 1
    await third.runs.end("run1", taken.epoch + 1, RunState.DONE, "all done")
    assert await word(two) == "done"
    assert [one.word for one in await two.runs.list()] == ["done"]
    assert not await two.runs.list(going=True)


async def test_a_run_is_not_begun_or_taken_up_while_everything_is_halted(another: Opens) -> None:
    one, two = another(), another()
    await begun(one)
    await one.runs.put_down("run1", 1)
    await two.switch.halt(by="ana")
    with pytest.raises(Halted):
        await begun(one, "run2")
    with pytest.raises(Halted):
        await two.runs.take_up("run1")
    await one.switch.unhalt(by="ana")
    assert (await two.runs.take_up("run1"))[0].epoch == 2


async def test_nothing_runs_for_a_run_that_was_put_down_although_nobody_took_it_up(broker: Broker) -> None:
    run = await begun(broker)
    request = await ask(broker, run=run.id)
    await broker.answer(request, YES, by=ANA)
    await broker.runs.put_down(run.id, run.epoch)
    with pytest.raises(RunTaken, match="was suspended; resume it"):
        await broker.claim(request, run=run.id, epoch=run.epoch)
    taken = await broker.runs.take(run.id)
    await broker.claim(request, run=run.id, epoch=taken.epoch)


async def test_brokers_that_share_a_store_are_one_process(broker: Broker) -> None:
    lent = Broker(broker.ledger.lend())
    run = await begun(lent)
    assert run.holder == broker.process.id
    assert await word(broker) == "running"
    with lent.runs.in_hand(run.id), pytest.raises(RunTaken, match="executed by this process"):
        await broker.runs.take_up(run.id)
    lent.runs.put_down_later(run.id, run.epoch)
    lent.store.close()
    assert await word(broker) == "ready", "what was left for later is written by whoever lent the store"
