"""Channels that are somebody's code, and wrong: each counts as a failure of that channel, and of nothing else."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import cast

import pytest
from tests.broker.conftest import Opens
from tests.delivery.posting import Board, ask_all, post_for, row

from signoff.broker import Broker
from signoff.core.notice import Notice
from signoff.delivery.delivery_status import running_channels, troubles_of
from signoff.delivery.routes import retry_pause
from signoff.errors import ChannelFailed
from signoff.ports import Inbox
from signoff.testing import FakeClock

MINUTE = timedelta(minutes=1)


async def given_up_inside() -> None:
    """As a client does with what is on its way when it is closed."""
    inner = asyncio.ensure_future(asyncio.Event().wait())
    inner.cancel()
    await inner


class ClosedShow(Board):
    async def show(self, notice: Notice, at: str = "", beside: str = "") -> str:
        await given_up_inside()
        return ""


class ClosedStart(Board):
    async def start(self, inbox: Inbox) -> None:
        await given_up_inside()


@pytest.mark.parametrize("kind", [ClosedShow, ClosedStart])
async def test_a_channel_that_is_cancelled_from_inside_failed(
    broker: Broker, clock: FakeClock, kind: type[Board]
) -> None:
    main, night = kind("main"), Board("night")
    post = post_for(broker, main, night)
    [request] = await ask_all(broker, "c1")
    await post.round()
    [trouble] = (await troubles_of(broker.ledger, [request]))[request]
    assert trouble.problem == "its own code cancelled it"
    assert request in night.places


@pytest.mark.parametrize(
    ("after", "seconds"),
    [(float("inf"), 86_400), (1e13, 86_400), (float("nan"), 1), (-5.0, 0), (float("-inf"), 0), (2.5, 2.5)],
)
def test_what_a_channel_asks_for_is_some_time(after: float, seconds: float) -> None:
    assert retry_pause(ChannelFailed("slow down", after=after), 1) == timedelta(seconds=seconds)


@pytest.mark.parametrize("after", [float("inf"), float("nan"), 1e13])
async def test_a_channel_that_asks_for_no_time_at_all_holds_up_itself(broker: Broker, after: float) -> None:
    bad, good = Board("bad"), Board("good")
    bad.fails = lambda notice: ChannelFailed("slow down", after=after)
    [request] = await ask_all(broker, "c1")
    await post_for(broker, bad, good).round()
    assert request in good.places
    assert (await row(broker, "bad", request)).problem == "slow down"


async def test_a_channel_that_does_not_say_where_is_broken(broker: Broker, clock: FakeClock) -> None:
    class Nowhere(Board):
        async def show(self, notice: Notice, at: str = "", beside: str = "") -> str:
            await super().show(notice, at, beside)
            return cast("str", None)

    main, night = Nowhere("main"), Board("night")
    post = post_for(broker, main, night)
    [request] = await ask_all(broker, "c1")
    await post.round()
    problem = (await row(broker, "main", request)).problem
    assert (
        problem
        == "the channel is broken: TypeError: show() returned NoneType; it must return the place of the notice, as text"
    )
    assert request in night.places


# --- when it has to stop ---


class Hangs(Board):
    def __init__(self, name: str = "hangs") -> None:
        super().__init__(name)
        self.stopping = asyncio.Event()

    async def stop(self) -> None:
        self.stopping.set()
        await asyncio.Event().wait()


async def test_a_channel_that_does_not_come_to_an_end_is_left_behind(another: Opens, clock: FakeClock) -> None:
    one, hangs, board = another(), Hangs(), Board()
    post = post_for(one, hangs, board)
    await post.round()
    stopping = asyncio.ensure_future(post.stop())
    await hangs.stopping.wait()
    assert "hangs" in await running_channels(one.ledger), "it is still in use"
    clock.advance(10 * timedelta(seconds=1))
    with pytest.warns(RuntimeWarning, match="'hangs' did not stop: it did not end within 10 seconds"):
        await stopping
    assert board.stopped == 1
    assert not await running_channels(one.ledger)
    await post_for(another(), Board("hangs"), board).round()


async def test_a_channel_that_has_just_started_is_stopped_too(broker: Broker) -> None:
    class Starts(Board):
        async def start(self, inbox: Inbox) -> None:
            await super().start(inbox)
            running.cancel()  # before anybody hears that it has started

    board = Starts()
    running = asyncio.ensure_future(post_for(broker, board).run())
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (board.started, board.stopped) == (1, 1)


async def test_channels_are_given_back_though_nobody_waits_for_the_end(another: Opens) -> None:
    one, hangs = another(), Hangs()
    running = asyncio.ensure_future(post_for(one, hangs).run())
    await hangs.until(lambda: hangs.started > 0)
    running.cancel()
    await hangs.stopping.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await one.store.flush()
    assert not one.ledger.channels
    await post_for(another(), Board("hangs")).round()


async def test_a_stop_that_is_cancelled_from_inside_hinders_nobody(broker: Broker) -> None:
    class Closed(Board):
        async def stop(self) -> None:
            await given_up_inside()

    board = Board()
    post = post_for(broker, Closed("closed"), board)
    await post.round()
    with pytest.warns(RuntimeWarning, match="'closed' did not stop: its own code cancelled it"):
        await post.stop()
    assert board.stopped == 1
    assert not broker.ledger.channels
