"""The post against anything in any order: failures, answers, deaths, time. What must hold at every step, and at last.

A channel that is told where something stands is told so whenever that was written down; within a trail messages come
in the order asked; and once everything works, whatever stands anywhere says what is so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TypeVar

import pytest
from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.broker.conftest import PEOPLE, RAM, kill, maker
from tests.delivery.posting import ANA, NO, YES, Bell, ask_all, post_for
from tests.profiles import NIGHTLY, examples

from signoff.broker import Broker
from signoff.core.delivery import NEVER, Delivery, DeliveryState
from signoff.core.lifecycle import OPEN
from signoff.core.notice import Asked, Notice, Reminder, Together
from signoff.core.request import State
from signoff.core.subject import Subject
from signoff.delivery import Reconciler, Route
from signoff.delivery.delivery_status import show_again
from signoff.errors import ChannelFailed, RequestError
from signoff.testing import FakeClock

T = TypeVar("T")
HAPPENINGS = ("yes", "no", "cancel", "claim", "finish", "lose")
MOODS = ("well", "well", "away", "each", "never", "breaks", "half", "hangs", "meanwhile")


class Watched(Bell):
    """A board that fails in every way there is, and notices when it is not told what is known."""

    def __init__(
        self,
        name: str,
        delivery: Callable[[str], Awaitable[Delivery | None]],
        happens: Callable[[str], Awaitable[None]],
    ) -> None:
        """`happens`: has something happen to a request that is being shown."""
        super().__init__(name)
        self._happens = happens
        self.mood = "well"
        self.hopeless: set[str] = set()
        self.wrong: list[str] = []
        self._delivery = delivery
        self.fails = self._failure

    def _failure(self, notice: Notice) -> BaseException | None:
        match self.mood:
            case "away":
                return ChannelFailed("away", whole=True)
            case "each":
                return ChannelFailed("not this one")
            case "never":
                self.hopeless.add(notice.subject)
                return ChannelFailed("never this one", again=False)
            case "half":
                return ChannelFailed("half of it", at="")
            case _:
                return None

    async def show(self, notice: Notice, at: str = "", beside: str = "") -> str:
        known = await self._delivery(notice.subject)
        if known is not None and known.shown != NEVER and at != known.place:
            self.wrong.append(f"{notice.subject} stands at {known.place!r}, and {at!r} was handed over")
        place = await super().show(notice, at, beside)
        if self.mood == "meanwhile" and isinstance(notice, Asked):
            await self._happens(notice.request.id)
        if self.mood == "breaks":  # it stands there, and nobody hears of it
            self.hopeless.add(notice.subject)
            raise KeyError("oh")
        if self.mood == "hangs":
            self.hung.set()
            await asyncio.Event().wait()
        return place

    async def remind(self, reminder: Reminder, card: str, at: str = "") -> str:
        known, stands = await self._delivery(reminder.request.id), self.messages.get(card)
        says = isinstance(stands, Asked) and stands.request.state is reminder.request.state
        if not says and known is not None and known.shown != NEVER and not known.hopeless and card == known.place:
            self.wrong.append(f"people were reminded of {reminder.request.id}, whose card does not say so yet")
        return await super().remind(reminder, card, at)


class AnyPost(RuleBasedStateMachine):
    """One store, two channels, and a process that dies now and then."""

    kind = "memory"

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.clock = FakeClock()
        self.directory = TemporaryDirectory(dir=RAM)
        self.make = maker(self.kind, Path(self.directory.name))
        self.brokers: list[Broker] = []
        self.broker = self._process()
        self.main, self.night = (
            Watched(name, self._delivery_in(name), self._while_shown) for name in ("main", "night")
        )
        self.routes: list[Route] = []
        self.asked: list[str] = []
        self.trails: dict[str, list[str]] = {}
        self.out_of_order: set[str] = set()
        """What may come late: it was settled first, or taken away."""

    def _process(self) -> Broker:
        broker = Broker(self.make(), self.clock, people=PEOPLE)
        broker.store.remind(3_600, lambda: None)  # only what happens here says that a process lives
        self.brokers.append(broker)
        return broker

    def _delivery_in(self, name: str) -> Callable[[str], Awaitable[Delivery | None]]:
        return lambda subject: self.broker.store.read(lambda tx: tx.deliveries.get(name, Subject.parse(subject)))

    def do(self, work: Awaitable[T]) -> T:
        async def doing() -> T:
            return await work

        return self.loop.run_until_complete(doing())

    @initialize(both=st.booleans(), timeout=st.sampled_from([None, timedelta(minutes=5)]))
    def begins(self, both: bool, timeout: timedelta | None) -> None:
        routes = [Route(self.main, timeout=timeout)]
        self.routes = [*routes, Route(self.night)] if both else routes
        self.post: Reconciler = post_for(self.broker, *self.routes)

    # --- what people and programs do ---

    @rule(count=st.integers(1, 3), run=st.sampled_from(["r1", "r2", "r3"]))
    def ask(self, count: int, run: str) -> None:
        self.clock.advance(0.001)
        names = [f"c{len(self.asked) + number}" for number in range(count)]
        ids = self.do(ask_all(self.broker, *names, run=run))
        self.asked += ids
        self.trails.setdefault(run, []).extend(ids)

    @precondition(lambda self: self.asked)
    @rule(which=st.integers(0, 60), how=st.sampled_from(HAPPENINGS))
    def something_happens(self, which: int, how: str) -> None:
        self.do(self._happens(self.asked[which % len(self.asked)], how))

    async def _happens(self, request: str, how: str) -> None:
        broker = self.broker
        self.out_of_order.add(request)
        try:
            match how:
                case "yes" | "no":
                    await broker.answer(request, YES if how == "yes" else NO, by=ANA)
                case "cancel":
                    await broker.cancel(request, "moot")
                case "claim":
                    await broker.claim(request)
                case "lose":
                    await broker.lose(request)
                case _:
                    if (await broker.get(request)).state is State.CLAIMED:
                        broker.finish(request, preview="done")
                        await broker.store.flush()
        except RequestError:
            pass

    async def _while_shown(self, request: str) -> None:
        """Whatever can happen next to a request happens before the channel has noted that it is shown."""
        state = (await self.broker.get(request)).state
        await self._happens(
            request, {State.PENDING: "yes", State.APPROVED: "claim", State.CLAIMED: "lose"}.get(state, "")
        )

    @precondition(lambda self: self.main.places)
    @rule(which=st.integers(0, 60))
    def taken_away(self, which: int) -> None:
        subject = list(self.main.places)[which % len(self.main.places)]
        if not subject.startswith("all:"):
            self.out_of_order |= {subject}
            del self.main.messages[self.main.places.pop(subject)]
            self.do(show_again(self.broker.ledger, "main", Subject.parse(subject)))

    # --- what the outside does ---

    @rule(main=st.sampled_from(MOODS), night=st.sampled_from(MOODS))
    def moods(self, main: str, night: str) -> None:
        self.main.mood, self.night.mood = main, night

    @rule(seconds=st.sampled_from([1, 2, 10, 61, 125, 400]))
    def time_passes(self, seconds: int) -> None:
        self.clock.advance(seconds)

    # --- what the post does ---

    @rule()
    def round(self) -> None:
        self.do(self._round())

    async def _round(self) -> None:
        going = asyncio.ensure_future(self.post.round())
        while not going.done():
            hung = asyncio.ensure_future(self.main.hung.wait()), asyncio.ensure_future(self.night.hung.wait())
            await asyncio.wait((going, *hung), return_when=asyncio.FIRST_COMPLETED)
            for one in hung:
                one.cancel()
            if not going.done():
                for board in (self.main, self.night):
                    board.hung.clear()
                    if board.mood == "hangs":  # otherwise it would go on for ever, a minute at a time
                        board.mood = "each"
                self.clock.advance(61)
        await going

    @rule(turns=st.integers(0, 40))
    def dies(self, turns: int) -> None:
        """In the middle of a round, at any moment."""
        self.do(self._dies(turns))

    async def _dies(self, turns: int) -> None:
        going = asyncio.ensure_future(self.post.round())
        for _ in range(turns):
            await asyncio.sleep(0)
        tasks = [going, *self.post._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.broker.store.write("wait", lambda tx: None)  # for what was on its way into the store
        if await self.broker.store.read(lambda tx: tx.processes.get(self.broker.process.id)) is not None:
            await kill(self.broker)
        self.broker = self._process()
        self.post = post_for(self.broker, *self.routes)

    # --- what must hold ---

    @invariant()
    def what_is_known_is_handed_over_and_nothing_stands_twice(self) -> None:
        for board in (self.main, self.night):
            assert board.wrong == []
            assert len(board.messages) == len(board.places)

    @invariant()
    def in_the_order_asked(self) -> None:
        for board in (self.main, self.night):
            late = self.out_of_order | self.main.hopeless | self.night.hopeless
            for run, asked in self.trails.items():
                shown = [one for one in board.order(run) if one not in late and not one.startswith("all:")]
                assert shown == [one for one in asked if one in shown]

    def teardown(self) -> None:
        try:
            if self.routes:
                self._at_last()
                self.do(self.post.stop())
        finally:
            for broker in self.brokers:
                broker.store.close()
            self.loop.close()
            self.directory.cleanup()

    def _at_last(self) -> None:
        """Everything works again, and time passes."""
        self.main.mood = self.night.mood = "well"
        for _ in range(4):
            self.do(self._round())
            self.clock.advance(3_601)
        self.do(self._round())
        self.what_is_known_is_handed_over_and_nothing_stands_twice()
        self.in_the_order_asked()
        for request_id in self.asked:
            request = self.do(self.broker.get(request_id))
            if request.state in OPEN:
                assert request_id in self.main.places, "somebody can see it"
                assert request_id in self.night.places or len(self.routes) == 1, "everywhere"
            for board in (self.main, self.night):
                if request_id in board.places:
                    self._says_what_is_so(board, request_id)
        for one in self.do(self.broker.store.read(lambda tx: tx.deliveries.find(live=True))):
            assert one.state is not DeliveryState.DUE or one.shown == NEVER

    def _says_what_is_so(self, board: Bell, request_id: str) -> None:
        request, notice = self.do(self.broker.get(request_id)), board.standing(request_id)
        assert isinstance(notice, Asked)
        delivery = self.do(self.broker.store.read(lambda tx: tx.deliveries.get(board.name, Subject.parse(request_id))))
        assert delivery is not None, "what stands there is known"
        assert notice.request.state is request.state
        assert notice.request.version == request.version
        first = f"all:{request_id}"
        if first in board.places:
            together = board.standing(first)
            assert isinstance(together, Together)
            states = [self.do(self.broker.get(one.id)).state for one in together.requests]
            if State.PENDING in states:
                assert [one.state for one in together.requests] == states
            else:
                assert State.PENDING not in [one.state for one in together.requests]


class InAFile(AnyPost):
    kind = "sqlite"


LARGE = [HealthCheck.data_too_large, HealthCheck.filter_too_much]


def test_whatever_happens_nothing_is_shown_twice_or_forgotten() -> None:
    steps = 60 if NIGHTLY else 30
    run_state_machine_as_test(AnyPost, settings=examples(3_000, daily=25, suppress=LARGE, stateful_step_count=steps))


def a_day(machine: AnyPost, seed: int, steps: int) -> None:
    """Steps at random: with a file, threads have a say in what happens when, which Hypothesis does not abide."""
    die, said = Random(seed), list[str]()
    machine.begins(both=die.random() < 0.7, timeout=die.choice([None, timedelta(minutes=5)]))
    try:
        for _ in range(steps):
            name, chosen = die.choice(
                [
                    ("ask", {"count": die.randint(1, 3), "run": die.choice(["r1", "r2", "r3"])}),
                    ("something_happens", {"which": die.randrange(60), "how": die.choice(HAPPENINGS)}),
                    ("taken_away", {"which": die.randrange(60)}),
                    ("moods", {"main": die.choice(MOODS), "night": die.choice(MOODS)}),
                    ("time_passes", {"seconds": die.choice([1, 2, 10, 61, 125, 400])}),
                    ("round", {}),
                    ("dies", {"turns": die.randrange(60)}),
                ]
            )
            if (name, bool(machine.asked)) == ("something_happens", False):
                continue
            if (name, bool(machine.main.places)) == ("taken_away", False):
                continue
            said.append(f"{name}({chosen})")
            getattr(machine, name)(**chosen)
            machine.what_is_known_is_handed_over_and_nothing_stands_twice()
            machine.in_the_order_asked()
        machine.teardown()
    except BaseException as error:
        error.add_note(f"on day {seed}, after:\n" + "\n".join(said))
        raise


@pytest.mark.parametrize("seed", range(8 if NIGHTLY else 2))
def test_days_at_random_in_a_file(seed: int) -> None:
    a_day(InAFile(), seed, 40)
