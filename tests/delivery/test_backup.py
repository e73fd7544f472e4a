"""A channel in the place of another one: it shows what that could not, and only that."""

from __future__ import annotations

from datetime import timedelta

import pytest
from tests.broker.conftest import Opens, kill
from tests.delivery.posting import ANA, NO, Board, ask_all, post_for, row

from signoff.broker import Broker
from signoff.core.delivery import DeliveryState
from signoff.core.request import State
from signoff.core.subject import Subject
from signoff.delivery import Reconciler, Route
from signoff.delivery.delivery_status import show_again, troubles_of
from signoff.errors import ChannelFailed, WrongUse
from signoff.testing import FakeClock

MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)


class Two:
    """A main channel that is away as long as the test says, and its backup."""

    def __init__(self, broker: Broker, **how: bool) -> None:
        self.main, self.night = Board("main"), Board("night")
        self.away = True
        self.main.fails = lambda notice: ChannelFailed("the service is away", **how) if self.away else None
        self.broker = broker
        self.post = self.posted(broker)

    def posted(self, broker: Broker) -> Reconciler:
        return post_for(broker, Route(self.main), Route(self.night, backup_for="main"))


@pytest.fixture(params=[True, False], ids=["whole", "each"])
def two(request: pytest.FixtureRequest, broker: Broker) -> Two:
    return Two(broker, whole=request.param)


async def for_a_while(two: Two, clock: FakeClock, seconds: int) -> None:
    for _ in range(seconds):
        clock.advance(SECOND)
        await two.post.round()


async def test_the_backup_takes_over_after_two_minutes(two: Two, clock: FakeClock) -> None:
    [request] = await ask_all(two.broker, "a")
    await two.post.round()
    await for_a_while(two, clock, 119)
    assert not two.night.tries
    await for_a_while(two, clock, 1)
    assert two.night.call(request).state is State.PENDING
    failed = await row(two.broker, "main", request)
    assert (failed.state, failed.instead, failed.problem) == (DeliveryState.FAILED, "night", "the service is away")
    [trouble] = (await troubles_of(two.broker.ledger, [request]))[request]
    assert trouble == failed


async def test_without_need_the_backup_shows_nothing(two: Two, clock: FakeClock) -> None:
    two.away = False
    await ask_all(two.broker, "a", "b")
    await two.post.round()
    await for_a_while(two, clock, 5)
    assert len(two.main.messages) == 3 and not two.night.tries


async def test_those_asked_at_once_come_to_the_backup_in_order_and_together(two: Two, clock: FakeClock) -> None:
    ids = await ask_all(two.broker, "a", "b", "c")
    clock.advance(SECOND)
    [later] = await ask_all(two.broker, "d")
    await two.post.round()
    await for_a_while(two, clock, 120)
    assert two.night.order("r1") == [*ids, f"all:{ids[0]}", later]
    two.away = False
    await for_a_while(two, clock, 120)
    assert not two.main.messages, "the backup shows them already"


async def test_what_is_settled_is_closed_in_the_backup(two: Two, clock: FakeClock) -> None:
    [request] = await ask_all(two.broker, "a")
    await two.post.round()
    await for_a_while(two, clock, 120)
    two.away = False
    await two.broker.answer(request, NO, by=ANA)
    await for_a_while(two, clock, 120)
    assert two.night.call(request).state is State.DENIED
    assert not two.main.messages
    assert not (await row(two.broker, "main", request)).live


async def test_what_is_asked_once_the_main_channel_is_back_goes_there(two: Two, clock: FakeClock) -> None:
    [old] = await ask_all(two.broker, "a")
    await two.post.round()
    await for_a_while(two, clock, 300)
    [meanwhile] = await ask_all(two.broker, "b", run="r2")
    await two.post.round()
    await for_a_while(two, clock, 120)
    assert set(two.night.places) == {old, meanwhile}
    two.away = False
    clock.advance(MINUTE)
    [new] = await ask_all(two.broker, "c", run="r3")
    await two.post.round()
    assert set(two.main.places) == {new}
    assert set(two.night.places) == {old, meanwhile}


async def test_of_one_run_the_next_goes_to_the_main_channel_again(two: Two, clock: FakeClock) -> None:
    await ask_all(two.broker, "a")
    await two.post.round()
    await for_a_while(two, clock, 120)
    two.away = False
    clock.advance(MINUTE)
    [new] = await ask_all(two.broker, "b")
    await two.post.round()
    assert set(two.main.places) == {new}


async def test_what_stood_in_the_main_channel_before_is_updated_there_once_it_is_back(
    two: Two, clock: FakeClock
) -> None:
    two.away = False
    [request] = await ask_all(two.broker, "a")
    await two.post.round()
    two.away = True
    await two.broker.answer(request, NO, by=ANA)
    await two.post.round()
    await for_a_while(two, clock, 180)
    assert not two.night.tries, "nobody waits for it"
    two.away = False
    await for_a_while(two, clock, 60)
    assert two.main.call(request).state is State.DENIED


async def test_what_the_main_channel_can_never_show_comes_to_the_backup_at_once(
    broker: Broker, clock: FakeClock
) -> None:
    two = Two(broker, again=False)
    one, other = (await ask_all(broker, "a", run="r1"))[0], (await ask_all(broker, "b", run="r2"))[0]
    two.main.fails = lambda notice: ChannelFailed("too long", again=False) if notice.subject == one else None
    await two.post.round()
    assert set(two.main.places) == {other} and set(two.night.places) == {one}


async def test_a_main_channel_that_is_gone_for_good_is_replaced_at_once(broker: Broker, clock: FakeClock) -> None:
    two = Two(broker, again=False, whole=True)
    ids = [(await ask_all(broker, f"c{number}", run=f"r{number}"))[0] for number in range(20)]
    await two.post.round()
    assert set(two.night.places) == set(ids)


async def test_a_main_channel_that_is_used_wrongly_is_replaced_at_once(broker: Broker) -> None:
    two = Two(broker)
    two.main.starts = lambda: WrongUse("the token is wrong")
    [request] = await ask_all(broker, "a")
    with pytest.warns(RuntimeWarning, match="the token is wrong"):
        await two.post.round()
    assert set(two.night.places) == {request}


async def test_a_main_channel_that_does_not_start_is_replaced_after_two_minutes(
    broker: Broker, clock: FakeClock
) -> None:
    two = Two(broker)
    two.main.starts = lambda: ChannelFailed("no network")
    [request] = await ask_all(broker, "a")
    await two.post.round()
    await for_a_while(two, clock, 119)
    assert not two.night.tries
    await for_a_while(two, clock, 1)
    assert set(two.night.places) == {request}


async def test_what_the_backup_cannot_show_either_stays_due_and_the_inbox_can_say_so(
    two: Two, clock: FakeClock
) -> None:
    two.night.fails = lambda notice: ChannelFailed("also away")
    [request] = await ask_all(two.broker, "a")
    await two.post.round()
    await for_a_while(two, clock, 150)
    problems = {one.channel: one.problem for one in (await troubles_of(two.broker.ledger, [request]))[request]}
    assert problems == {"main": "the service is away", "night": "also away"}
    two.night.fails = lambda notice: None
    await for_a_while(two, clock, 60)
    assert two.night.call(request).state is State.PENDING


async def test_an_outage_goes_on_for_the_process_that_takes_over(another: Opens, clock: FakeClock) -> None:
    one, other = another(), another()
    two = Two(one, whole=True)
    [request] = await ask_all(one, "a")
    await two.post.round()
    await for_a_while(two, clock, 90)
    await kill(one)
    two.main.starts = lambda: ChannelFailed("the service is away")
    two.post = two.posted(other)
    await two.post.round()
    await for_a_while(two, clock, 29)
    assert not two.night.tries
    await for_a_while(two, clock, 1)
    assert set(two.night.places) == {request}, "two minutes in all"


async def test_a_backup_of_the_backup(broker: Broker, clock: FakeClock) -> None:
    boards = [Board("one"), Board("two"), Board("three")]
    for board in boards[:2]:
        board.fails = lambda notice: ChannelFailed("never", again=False)
    one, two, three = boards
    post = post_for(broker, Route(one), Route(two, backup_for="one"), Route(three, backup_for="two"))
    [request] = await ask_all(broker, "a")
    await post.round()
    assert set(three.places) == {request}
    assert (await row(broker, "one", request)).instead == "two"
    assert (await row(broker, "two", request)).instead == "three"


async def test_a_backup_run_by_another_process_shows_what_was_given_up_for_it_and_no_more(another: Opens) -> None:
    one, other = another(), another()
    two = Two(one, again=False)
    two.night.fails = lambda notice: ChannelFailed("not here")
    [request] = await ask_all(one, "a", run="r1")
    await two.post.round()
    await two.post.stop()
    await ask_all(other, "b", run="r2")
    two.night.fails = lambda notice: None
    other.clock.advance(SECOND)  # type: ignore[attr-defined]
    await post_for(other, Route(two.night, backup_for="main")).round()
    assert set(two.night.places) == {request}


async def test_a_message_that_may_stand_in_the_main_channel_after_all_is_closed_there(
    broker: Broker, clock: FakeClock
) -> None:
    two = Two(broker)
    two.main.fails = lambda notice: None if not two.away else KeyError("posted, and then it broke")
    [request] = await ask_all(broker, "a")
    await two.post.round()
    assert set(two.night.places) == {request}
    two.away = False
    await for_a_while(two, clock, 120)
    assert not two.main.messages, "the backup shows it already"
    await broker.answer(request, NO, by=ANA)
    await two.post.round()
    assert two.main.call(request).state is two.night.call(request).state is State.DENIED


# --- what was known before this process ---


@pytest.mark.parametrize("again", [True, False])
async def test_after_a_restart_the_main_channel_is_tried_before_anything_is_given_up(
    another: Opens, clock: FakeClock, again: bool
) -> None:
    """It was down when the last process ended, long ago or for good: somebody may have put it right."""
    one = another()
    two = Two(one)
    two.away = False
    two.main.starts = lambda: ChannelFailed("the token is wrong", again=again)
    await two.post.round()
    await two.post.stop()
    clock.advance(timedelta(days=3))
    [request] = await ask_all(one, "a")
    two.main.starts = lambda: None
    await two.posted(another()).round()
    assert set(two.main.places) == {request}
    assert not two.night.places


async def test_after_a_restart_what_is_still_down_is_given_up_once_that_is_known(
    another: Opens, clock: FakeClock
) -> None:
    one = another()
    two = Two(one)
    two.main.starts = lambda: ChannelFailed("no network")
    await two.post.round()
    await two.post.stop()
    clock.advance(timedelta(days=3))
    [request] = await ask_all(one, "a")
    await two.posted(another()).round()
    assert set(two.night.places) == {request}


# --- what is said to be gone ---


async def test_what_is_gone_and_shown_by_the_backup_is_closed_in_the_main_channel_too(
    broker: Broker, clock: FakeClock
) -> None:
    """Whoever said that it is gone may have been wrong, as where only part of a message was hidden."""
    two = Two(broker, whole=True)
    two.away = False
    [request] = await ask_all(broker, "a")
    await two.post.round()
    two.away = True
    await show_again(broker.ledger, "main", Subject.parse(request))
    await two.post.round()
    await for_a_while(two, clock, 180)
    assert two.night.call(request).state is State.PENDING
    two.away = False
    await broker.answer(request, NO, by=ANA)
    await for_a_while(two, clock, 60)
    assert two.night.call(request).state is two.main.call(request).state is State.DENIED
