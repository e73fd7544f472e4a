"""The post while it runs: it wakes by itself, can be stopped at any moment, and runs once for each channel."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from tests.broker.conftest import Opens, kill
from tests.delivery.posting import ANA, NO, Board, ask_all, post_for, row

from signoff.broker import Broker
from signoff.core.delivery import NEVER
from signoff.core.request import State
from signoff.delivery import Reconciler, Route
from signoff.delivery.delivery_status import running_channels
from signoff.errors import WrongUse
from signoff.testing import FakeClock

MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)


async def stopped(*running: asyncio.Future[None]) -> None:
    for one in running:
        one.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    assert all(one.cancelled() for one in running)


async def test_it_wakes_when_somebody_asks_or_answers_anywhere(another: Opens) -> None:
    here, there, board = another(), another(), Board()
    running = asyncio.ensure_future(post_for(here, board).run())
    await board.until(lambda: board.started == 1)
    [request] = await ask_all(there, "a")
    await board.until(lambda: request in board.places)
    await there.answer(request, NO, by=ANA)
    await board.until(lambda: board.call(request).state is State.DENIED)
    await stopped(running)
    assert board.stopped == 1


async def test_what_comes_while_a_delivery_turns_out_to_be_over_is_shown_then(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    board, goes_on, begins, write = Board(), asyncio.Event(), asyncio.Event(), broker.store.write

    async def slowly(name: str, *args: Any, **more: Any) -> Any:
        """The store takes its time to begin the first delivery."""
        if name == "show":
            begins.set()
            await goes_on.wait()
        return await write(name, *args, **more)

    monkeypatch.setattr(broker.store, "write", slowly)
    running = asyncio.ensure_future(post_for(broker, board).run())
    [moot] = await ask_all(broker, "a")
    await begins.wait()
    await broker.cancel(moot, "moot")
    [request] = await ask_all(broker, "b")
    looks, read = asyncio.Event(), broker.store.read

    async def looking(work: Any, **more: Any) -> Any:
        looks.set()
        return await read(work, **more)

    monkeypatch.setattr(broker.store, "read", looking)
    await looks.wait()  # the post has seen it, and left it to the delivery that has begun
    await broker.store.read(lambda tx: None)
    goes_on.set()
    await board.until(lambda: request in board.places)
    await stopped(running)


async def test_it_feeds_time_by_itself(broker: Broker, clock: FakeClock) -> None:
    board = Board()
    [request] = await ask_all(broker, "a")
    running = asyncio.ensure_future(post_for(broker, Route(board, timeout=MINUTE)).run())
    await board.until(lambda: request in board.places)
    while board.call(request).state is State.PENDING:
        clock.advance(SECOND)
        await asyncio.sleep(0)
    assert board.call(request).state is State.EXPIRED
    await stopped(running)


async def test_a_deadline_is_kept_to_the_second(broker: Broker, clock: FakeClock) -> None:
    board = Board()
    [request] = await ask_all(broker, "a")
    post = post_for(broker, Route(board, timeout=timedelta(seconds=7)))
    await post.round()
    running = asyncio.ensure_future(post.run())
    for _ in range(8):
        await wakes(clock)
    await board.until(lambda: board.call(request).state is State.EXPIRED)  # and no more time passes
    await stopped(running)


async def wakes(clock: FakeClock) -> None:
    """A second passes, and everybody who was woken has had time to act."""
    clock.advance(SECOND)
    for _ in range(200):
        await asyncio.sleep(0)


async def test_two_rounds_at_once_and_a_run_beside_them_show_everything_once(broker: Broker) -> None:
    board = Board()
    post = post_for(broker, board)
    ids = [one for number in range(10) for one in await ask_all(broker, f"a{number}", f"b{number}", run=f"r{number}")]
    running = asyncio.ensure_future(post.run())
    await asyncio.gather(post.round(), post.round(), post.round())
    assert set(ids) < set(board.places)
    assert len(board.messages) == len(board.tries) == 30
    await stopped(running)


async def test_stopped_at_any_moment_nothing_is_half_written_and_the_next_goes_on(another: Opens) -> None:
    broker, board = another(), Board()
    ids = [(await ask_all(broker, f"c{number}", run=f"r{number % 3}"))[0] for number in range(12)]
    for turns in range(60):
        running = asyncio.ensure_future(post_for(broker, board).run())
        for _ in range(turns):
            await asyncio.sleep(0)
        await stopped(running)
        assert board.inside == 0, "what was on its way was given up"
        for one in await broker.store.read(lambda tx: tx.deliveries.find()):
            assert one.shown == NEVER or board.places[str(one.subject)] == one.place
    await post_for(broker, board).round()
    assert set(ids) <= set(board.places)
    assert len(board.messages) == len(board.places)


async def test_a_channel_that_does_not_stop_well_hinders_nobody(broker: Broker) -> None:
    class Stuck(Board):
        async def stop(self) -> None:
            raise KeyError("oh")

    stuck, board = Stuck("stuck"), Board()
    post = post_for(broker, stuck, board)
    await post.round()
    with pytest.warns(RuntimeWarning, match="'stuck' did not stop"):
        await post.stop()
    assert board.stopped == 1


# --- one process for each channel ---


async def test_a_second_process_is_refused_and_takes_over_once_the_first_is_gone(another: Opens) -> None:
    one, two, board = another(), another(), Board()
    [request] = await ask_all(one, "a")
    await post_for(one, board).round()
    with pytest.raises(WrongUse, match=rf"channel 'board' is run by process {one.process.pid} on "):
        await post_for(two, Board("free"), board).round()
    assert list(await running_channels(two.ledger)) == ["board"], "nothing was taken where something was refused"
    await kill(one)
    await two.answer(request, NO, by=ANA)
    await post_for(two, board).round()
    assert board.call(request).state is State.DENIED
    assert len(board.messages) == 1


async def test_one_that_was_stopped_leaves_the_channel_to_others(another: Opens) -> None:
    one, two, board = another(), another(), Board()
    running = asyncio.ensure_future(post_for(one, board).run())
    await board.until(lambda: board.started == 1)
    await stopped(running)
    await post_for(two, board).round()
    assert board.started == 2


async def test_twice_in_one_process_is_refused_too(broker: Broker) -> None:
    board = Board()
    post = post_for(broker, board)
    await post.round()
    with pytest.raises(WrongUse, match="by this process"):
        await post_for(broker, board).run()
    await post.stop()
    await post_for(broker, board).round()


async def test_one_that_was_thought_gone_ends_when_it_finds_out(another: Opens, clock: FakeClock) -> None:
    here, far, board = another(), another(far=True), Board()
    asleep = post_for(far, board)
    await ask_all(far, "a")
    await asleep.round()
    clock.advance(MINUTE)
    await post_for(here, board).round()
    await ask_all(here, "b")
    with pytest.raises(WrongUse, match="taken over by another process"):
        await asleep.round()
    assert len(board.tries) == 1
    await asleep.stop()
    assert list(await running_channels(here.ledger)) == ["board"], "it is not given back by who lost it"


async def test_different_channels_may_be_run_by_different_processes(another: Opens) -> None:
    one, two = another(), another()
    left, right = Board("left"), Board("right")
    [request] = await ask_all(one, "a")
    posts: list[Reconciler] = [post_for(one, left), post_for(two, right)]
    for post in posts:
        await post.round()
    await two.answer(request, NO, by=ANA)
    for post in posts:
        await post.round()
    assert left.call(request).state is right.call(request).state is State.DENIED
    assert (await row(one, "left", request)).live is False


async def test_one_that_is_stopped_while_it_takes_the_channel_does_not_keep_it(another: Opens) -> None:
    board = Board()
    for turns in range(12):
        one, two = another(), another()
        running = asyncio.ensure_future(post_for(one, board).run())
        for _ in range(turns):
            await asyncio.sleep(0)
        await stopped(running)
        post = post_for(two, board)
        await post.round()
        await post.stop()
