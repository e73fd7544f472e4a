"""A channel that fails, hangs, breaks or does not start holds up nothing but itself, and nothing is forgotten."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from itertools import pairwise

import pytest
from tests.broker.conftest import Opens
from tests.delivery.posting import ANA, NO, YES, Bell, Board, ask_all, post_for, row

from signoff.broker import Broker
from signoff.core.delivery import DeliveryState
from signoff.core.request import State
from signoff.core.subject import Subject
from signoff.delivery.delivery_status import place_of, running_channels, troubles_of
from signoff.errors import ChannelFailed, StoreError, WrongUse
from signoff.testing import FakeClock

MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)


async def test_it_is_tried_again_after_longer_and_longer_pauses(broker: Broker, clock: FakeClock) -> None:
    board = Board()
    board.fails = lambda notice: ChannelFailed("the service is away")
    post = post_for(broker, board)
    [request] = await ask_all(broker, "c1")
    moments = [clock.now()]
    await post.round()
    for _ in range(600):
        before = len(board.tries)
        clock.advance(SECOND)
        await post.round()
        if len(board.tries) > before:
            moments.append(clock.now())
    pauses = [(b - a).total_seconds() for a, b in pairwise(moments)]
    assert pauses[:8] == [1, 2, 4, 8, 16, 32, 60, 60]
    failing = await row(broker, "board", request)
    assert (failing.state, failing.problem, failing.attempts) == (
        DeliveryState.DUE,
        "the service is away",
        len(moments),
    )
    board.fails = lambda notice: None
    clock.advance(MINUTE)
    await post.round()
    shown = await row(broker, "board", request)
    assert (shown.state, shown.problem, shown.attempts, shown.since) == (DeliveryState.SHOWN, "", 0, None)


async def test_the_other_side_may_say_when(broker: Broker, clock: FakeClock) -> None:
    board = Board()
    board.fails = lambda notice: ChannelFailed("slow down", after=7.5)
    post = post_for(broker, board)
    await ask_all(broker, "c1")
    await post.round()
    clock.advance(7)
    await post.round()
    assert len(board.tries) == 1
    clock.advance(0.5)
    await post.round()
    assert len(board.tries) == 2


async def test_what_is_known_of_where_it_stands_is_handed_over_with_the_next_try(
    broker: Broker, clock: FakeClock
) -> None:
    board = Board()
    board.fails = lambda notice: ChannelFailed("half done", at="thread/")
    post = post_for(broker, board)
    [request] = await ask_all(broker, "c1")
    await post.round()
    assert await place_of(broker.ledger, "board", Subject.parse(request)) == "", "nothing to look at yet"
    clock.advance(SECOND)
    await post.round()
    assert [at for _, at, _ in board.tries] == ["", "thread/"]


async def test_what_half_stands_there_is_closed_when_it_waits_no_longer(broker: Broker, clock: FakeClock) -> None:
    board = Board()
    board.fails = lambda notice: ChannelFailed("half done", at="thread/")
    post = post_for(broker, board)
    [request] = await ask_all(broker, "c1")
    await post.round()
    await broker.answer(request, NO, by=ANA)
    board.fails = lambda notice: None
    clock.advance(SECOND)
    await post.round()
    assert board.call(request).state is State.DENIED


async def test_one_that_fails_holds_up_its_own_trail_and_no_other(broker: Broker, clock: FakeClock) -> None:
    board = Board()
    post = post_for(broker, board)
    one = (await ask_all(broker, "a", run="r1"))[0]
    clock.advance(SECOND)
    two = (await ask_all(broker, "b", run="r1"))[0]
    other = (await ask_all(broker, "c", run="r2"))[0]
    board.fails = lambda notice: ChannelFailed("no") if notice.subject == one else None
    await post.round()
    assert set(board.places) == {other}
    board.fails = lambda notice: None
    clock.advance(SECOND)
    await post.round()
    assert board.order("r1") == [one, two]


async def test_one_that_can_never_be_shown_holds_up_nobody_and_the_inbox_can_say_so(
    broker: Broker, clock: FakeClock
) -> None:
    board = Board()
    post = post_for(broker, board)
    one = (await ask_all(broker, "a"))[0]
    clock.advance(SECOND)
    two = (await ask_all(broker, "b"))[0]
    board.fails = lambda notice: ChannelFailed("it is too long", again=False) if notice.subject == one else None
    await post.round()
    assert set(board.places) == {two}
    [trouble] = (await troubles_of(broker.ledger, [one, two, "nobody"]))[one]
    assert (trouble.channel, trouble.problem, trouble.state) == ("board", "it is too long", DeliveryState.DUE)
    board.fails = lambda notice: None
    clock.advance(59)
    await post.round()
    assert one not in board.places
    clock.advance(1)
    await post.round()
    assert one in board.places, "somebody has done something"
    assert await troubles_of(broker.ledger, [one, two]) == {}


async def test_a_channel_that_breaks_says_so_and_the_rest_goes_on(broker: Broker) -> None:
    board, other = Board(), Board("other")
    one, two = (await ask_all(broker, "a", run="r1"))[0], (await ask_all(broker, "b", run="r2"))[0]
    board.fails = lambda notice: KeyError("oh") if notice.subject == one else None
    await post_for(broker, board, other).round()
    assert set(board.places) == {two} and set(other.places) == {one, two}
    assert (await row(broker, "board", one)).problem == "the channel is broken: KeyError: 'oh'"


async def test_a_store_that_fails_at_the_inbox_is_no_fault_of_the_channel(broker: Broker, clock: FakeClock) -> None:
    main = Board("main")
    [one] = await ask_all(broker, "a")
    main.fails = lambda notice: StoreError("it is locked") if len(main.tries) == 1 else None
    post = post_for(broker, main)
    await post.round()
    assert (await row(broker, "main", one)).problem == "the store failed: it is locked"
    clock.advance(SECOND)
    await post.round()
    assert one in main.places


async def test_secrets_do_not_reach_what_is_kept_of_a_failure(another: Opens) -> None:
    broker, board = another(masked=("hunter2hunter2",)), Board()
    board.fails = lambda notice: ChannelFailed("token hunter2hunter2 was refused", whole=notice.trail == "r2")
    one, two = (await ask_all(broker, "a", run="r1"))[0], (await ask_all(broker, "b", run="r2"))[0]
    await post_for(broker, board).round()
    for troubles in (await troubles_of(broker.ledger, [one, two])).values():
        assert troubles and "hunter2" not in troubles[0].problem
    assert "hunter2" not in str(await running_channels(broker.ledger))


# --- the whole channel ---


async def test_a_channel_that_is_away_rests_as_a_whole_and_one_try_finds_it_back(
    broker: Broker, clock: FakeClock
) -> None:
    board, other = Board(), Board("other")
    away = True
    board.fails = lambda notice: ChannelFailed("the service is away", whole=True) if away else None
    post = post_for(broker, board, other)
    ids = [(await ask_all(broker, f"c{number}", run=f"r{number}"))[0] for number in range(30)]
    await post.round()
    assert len(other.messages) == 30
    assert len(board.tries) <= 8, "those that were on their way when it was found out"
    troubles = await troubles_of(broker.ledger, ids)
    assert {one.problem for each in troubles.values() for one in each} == {"the service is away"}
    assert len(troubles) == 30, "also for those that nobody tried"
    tries = len(board.tries)
    clock.advance(SECOND)
    await post.round()
    assert len(board.tries) == tries + 1
    clock.advance(SECOND)
    await post.round()
    assert len(board.tries) == tries + 1, "two seconds this time"
    away = False
    clock.advance(SECOND)
    await post.round()
    assert set(board.places) == set(ids)
    assert board.first.total() == 30
    assert await troubles_of(broker.ledger, ids) == {}


async def test_how_long_a_whole_channel_rests_grows_by_outages_not_by_what_was_on_its_way(
    broker: Broker, clock: FakeClock
) -> None:
    board = Board()
    board.fails = lambda notice: ChannelFailed("away", whole=True)
    post = post_for(broker, board)
    for number in range(8):
        await ask_all(broker, f"c{number}", run=f"r{number}")
    await post.round()
    lease = (await running_channels(broker.ledger))["board"]
    assert lease.down is not None and lease.down.attempts == 1 and lease.down.due == clock.now() + SECOND


# --- what stands there and cannot be brought up to date ---


async def test_an_update_that_fails_is_tried_again_and_holds_up_nothing(broker: Broker, clock: FakeClock) -> None:
    board = Board()
    post = post_for(broker, board)
    one = (await ask_all(broker, "a"))[0]
    await post.round()
    await broker.answer(one, YES, by=ANA)
    clock.advance(SECOND)
    two = (await ask_all(broker, "b"))[0]
    board.fails = lambda notice: ChannelFailed("no") if notice.subject == one else None
    await post.round()
    assert two in board.places
    assert board.call(one).state is State.PENDING
    assert (await row(broker, "board", one)).state is DeliveryState.SHOWN
    board.fails = lambda notice: None
    clock.advance(SECOND)
    await post.round()
    assert board.call(one).state is State.APPROVED


@pytest.mark.parametrize("again", [True, False])
async def test_what_cannot_be_closed_is_tried_for_a_day_and_then_left(
    broker: Broker, clock: FakeClock, again: bool
) -> None:
    board = Board()
    post = post_for(broker, board)
    [request] = await ask_all(broker, "a")
    await post.round()
    board.fails = lambda notice: ChannelFailed("the thread is locked", again=again)
    await broker.answer(request, NO, by=ANA)
    await post.round()
    for _ in range(24 * 6 - 1):
        clock.advance(10 * MINUTE)
        await post.round()
    assert (await row(broker, "board", request)).live
    assert (len(board.tries) < 50) is not again, "more and more rarely where it is of no use"
    clock.advance(60 * MINUTE)
    await post.round()
    left = await row(broker, "board", request)
    assert (left.live, left.problem) == (False, "the thread is locked")


async def test_what_could_not_be_closed_is_closed_once_somebody_put_it_right(broker: Broker, clock: FakeClock) -> None:
    board = Board()
    post = post_for(broker, board)
    [request] = await ask_all(broker, "a")
    await post.round()
    board.fails = lambda notice: ChannelFailed("the thread is locked", again=False)
    await broker.answer(request, NO, by=ANA)
    await post.round()
    board.fails = lambda notice: None
    clock.advance(MINUTE)
    await post.round()
    assert board.call(request).state is State.DENIED


@pytest.mark.parametrize("again", [True, False])
async def test_what_becomes_unknown_is_soon_shown_whatever_failed_before_and_people_are_reminded_once_it_is(
    broker: Broker, clock: FakeClock, again: bool
) -> None:
    board = Bell()
    post = post_for(broker, board)
    [request] = await ask_all(broker, "a")
    await post.round()
    board.fails = lambda notice: ChannelFailed("not now", again=again)
    await broker.answer(request, YES, by=ANA)
    await broker.claim(request)
    for _ in range(8):  # nobody waits for it, so it is tried ever more rarely where it is refused
        clock.advance(60 * MINUTE)
        await post.round()
    await broker.lose(request)
    await post.round()
    told = [(reminder.request.state, stands) for reminder, stands in board.rung]
    assert [state for state, _ in told] == ([] if again else [State.UNKNOWN]), "what can never be shown holds up nobody"
    board.fails = lambda notice: None
    clock.advance(MINUTE)
    await post.round()
    await post.round()
    assert board.call(request).state is State.UNKNOWN
    [(_, stands)] = board.rung
    assert not again or stands == board.standing(request), "whoever is reminded finds the buttons"


# --- hanging ---


async def test_one_that_hangs_holds_up_neither_other_trails_nor_other_channels(
    broker: Broker, clock: FakeClock
) -> None:
    board, other = Board(), Board("other")
    one, two = (await ask_all(broker, "a", run="r1"))[0], (await ask_all(broker, "b", run="r2"))[0]
    board.hangs = lambda notice: notice.subject == one
    running = asyncio.ensure_future(post_for(broker, board, other).run())
    await other.until(lambda: len(other.messages) == 2)
    await board.until(lambda: two in board.places)
    assert one not in board.places
    await _stopped(running)


async def test_one_that_hangs_is_given_up_after_a_minute_and_not_before(broker: Broker, clock: FakeClock) -> None:
    board = Board()
    [request] = await ask_all(broker, "a")
    board.hangs = lambda notice: True
    post = post_for(broker, board)
    going = asyncio.ensure_future(post.round())
    await board.hung.wait()
    clock.advance(59)
    for _ in range(20):
        await asyncio.sleep(0)
    assert len(board.tries) == 1 and board.inside == 1
    clock.advance(1)
    await going
    assert board.inside == 0, "it was cancelled"
    assert (await row(broker, "board", request)).problem == "it did not answer within 60 seconds"
    board.hangs = lambda notice: False
    await broker.answer(request, NO, by=ANA)
    clock.advance(1)
    await post.round()
    assert board.call(request).state is State.DENIED, "it may have been there, so it is closed"


# --- starting ---


async def test_a_channel_that_does_not_start_is_started_again_and_the_others_go_on(
    broker: Broker, clock: FakeClock
) -> None:
    board, other = Board(), Board("other")
    board.starts = lambda: ChannelFailed("no network")
    post = post_for(broker, board, other)
    [request] = await ask_all(broker, "a")
    await post.round()
    assert request in other.places and not board.tries
    [trouble] = (await troubles_of(broker.ledger, [request]))[request]
    assert (trouble.channel, trouble.problem) == ("board", "no network")
    clock.advance(SECOND)
    await post.round()
    assert board.started == 2
    board.starts = lambda: None
    clock.advance(2 * SECOND)
    await post.round()
    assert board.started == 3 and request in board.places and other.started == 1


async def test_a_channel_that_breaks_while_starting_is_tried_again_after_a_minute(
    broker: Broker, clock: FakeClock
) -> None:
    board = Board()
    board.starts = lambda: KeyError("oh")
    post = post_for(broker, board)
    await post.round()
    clock.advance(59)
    await post.round()
    assert board.started == 1
    clock.advance(1)
    await post.round()
    assert board.started == 2


async def test_a_channel_used_wrongly_ends_it_where_there_is_no_other(broker: Broker) -> None:
    board = Board()
    board.starts = lambda: WrongUse("the token is wrong")
    with pytest.raises(WrongUse, match="the token is wrong"):
        await post_for(broker, board).run()
    assert not (await running_channels(broker.ledger)), "it was let go"


async def test_a_channel_used_wrongly_is_left_out_where_there_are_others(broker: Broker, clock: FakeClock) -> None:
    board, other = Board(), Board("other")
    board.starts = lambda: WrongUse("the token is wrong")
    post = post_for(broker, board, other)
    [request] = await ask_all(broker, "a")
    with pytest.warns(RuntimeWarning, match="'board' cannot be used: the token is wrong"):
        await post.round()
    clock.advance(10 * MINUTE)
    await post.round()
    assert board.started == 1 and request in other.places
    [trouble] = (await troubles_of(broker.ledger, [request]))[request]
    assert trouble.problem == "the token is wrong"


# --- the store ---


class Breaks:
    """Makes a store fail for some of its writes or reads: the store is real, the trouble with its file is not."""

    def __init__(self, broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: set[str] = set()
        self.failed = 0
        write, read = broker.store.write, broker.store.read

        async def writing(name: str, work: object, **more: object) -> object:
            self._check(name)
            return await write(name, work, **more)  # type: ignore[arg-type]

        async def reading(work: object, **more: object) -> object:
            self._check("read")
            return await read(work, **more)  # type: ignore[arg-type]

        monkeypatch.setattr(broker.store, "write", writing)
        monkeypatch.setattr(broker.store, "read", reading)

    def _check(self, name: str) -> None:
        if name in self.names:
            self.failed += 1
            raise StoreError("the disk is full")


@pytest.mark.parametrize("name", ["read", "show", "run channels"])
async def test_a_store_that_fails_is_tried_again_and_it_is_said_aloud(
    broker: Broker, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    board = Board()
    [request] = await ask_all(broker, "a")
    trouble = Breaks(broker, monkeypatch)
    trouble.names = {name}

    async def goes_on() -> None:
        running = asyncio.ensure_future(post_for(broker, board).run())
        while not trouble.failed:
            await asyncio.sleep(0)
        trouble.names = set()
        while request not in board.places:
            await asyncio.sleep(0)
            clock.advance(SECOND)
        await _stopped(running)

    with pytest.warns(RuntimeWarning, match="the disk is full"):
        await goes_on()
    assert board.first[request] == 1


async def test_what_was_shown_while_the_store_failed_is_written_down_later_and_not_shown_again(
    broker: Broker, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    board = Board()
    [request] = await ask_all(broker, "a")
    trouble = Breaks(broker, monkeypatch)
    trouble.names = {"shown"}

    async def goes_on() -> None:
        going = asyncio.ensure_future(post_for(broker, board).round())
        while trouble.failed < 2:
            await asyncio.sleep(0)
            clock.advance(SECOND)
        trouble.names = set()
        while not going.done():
            await asyncio.sleep(0)
            clock.advance(SECOND)
        await going

    with pytest.warns(RuntimeWarning, match="the disk is full"):
        await goes_on()
    assert len(board.tries) == 1
    assert (await row(broker, "board", request)).shown == 0


async def test_a_round_says_what_is_wrong_with_the_store(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    post = post_for(broker, Board())
    trouble = Breaks(broker, monkeypatch)
    trouble.names = {"read"}
    with pytest.raises(StoreError, match="the disk is full"):
        await post.round()


async def _stopped(running: asyncio.Future[None]) -> None:
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert running.cancelled()
