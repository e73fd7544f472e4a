"""Ten minutes in which a channel cannot be reached, while many questions are asked."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from tests.broker.conftest import PEOPLE, Opens, kill, maker
from tests.delivery.posting import ANA, NO, YES, Board, ask_all, post_for

from signoff.broker import Broker
from signoff.core.notice import Asked
from signoff.delivery import Reconciler
from signoff.delivery.delivery_status import troubles_of
from signoff.errors import ChannelFailed
from signoff.ports import Store
from signoff.testing import FakeClock

BEGINS, ENDS, LATER = 60, 660, 900
"""Seconds from the start: ten minutes of outage, and what comes after."""
TICK = 5


class Case(NamedTuple):
    """One way for it to happen."""

    store: str
    whole: bool
    dies_at: int
    requests: int

    @property
    def runs(self) -> int:
        return self.requests * 2 // 25


class Outage:
    """A quarter of an hour, five seconds at a time."""

    def __init__(self, another: Opens, clock: FakeClock, case: Case) -> None:
        self.another, self.clock, self.die = another, clock, Random(case.dies_at + 10 * case.whole)
        self.case = case
        self.now = 0
        self.asked: list[str] = []
        self.runs: dict[str, list[str]] = {}
        self.answered_unseen: set[str] = set()
        self.on_its_way: set[str] = set()
        self.main = Board("main")
        self.main.fails = lambda notice: self._away()
        self.broker: Broker = another()
        self.post = self._posted()

    def _away(self) -> ChannelFailed | None:
        return ChannelFailed("the service is away", whole=self.case.whole) if BEGINS <= self.now < ENDS else None

    def _posted(self) -> Reconciler:
        return post_for(self.broker, self.main)

    async def happens(self) -> None:
        moments = sorted(self.die.randrange(0, ENDS + 60) for _ in range(self.case.requests))
        while self.now < LATER:
            while moments and moments[0] <= self.now:
                moments.pop(0)
                await self._ask()
            if self.now == self.case.dies_at:
                await self._dies()
            await self.post.round()
            if self.die.random() < 0.5:
                await self._answer()
            self.clock.advance(TICK)
            self.now += TICK
        await self.post.round()

    async def _ask(self) -> None:
        run = f"run{self.die.randrange(self.case.runs)}"
        [request] = await ask_all(self.broker, f"c{len(self.asked)}", run=run)
        self.asked.append(request)
        self.runs.setdefault(run, []).append(request)
        self.clock.advance(0.001)  # not asked at once: nothing is shown together

    async def _answer(self) -> None:
        pending = await self.broker.pending()
        if pending:
            chosen = self.die.choice(pending).id
            await self.broker.answer(chosen, self.die.choice([YES, NO]), by=ANA)
            if chosen not in self.main.places:
                self.answered_unseen.add(chosen)

    async def _dies(self) -> None:
        """In the middle of it all: nothing is given back, and what was on its way is on its way."""
        going = asyncio.ensure_future(self.post.round())
        for _ in range(self.die.randrange(60)):
            await asyncio.sleep(0)
        tasks = [going, *self.post._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await kill(self.broker)
        self.broker = self.another()
        self.post = self._posted()
        left = await self.broker.store.read(lambda tx: tx.deliveries.find(live=True))
        self.on_its_way = {str(one.subject) for one in left if one.may_stand}


DEATHS = (-1, 30, 300, ENDS)
WAYS = [
    *(("memory", whole, dies_at) for whole in (False, True) for dies_at in DEATHS),
    ("sqlite", False, 300),
    ("sqlite", True, 300),
]
FEW = [("memory", number in (1, 2), dies_at) for number, dies_at in enumerate(DEATHS)]
"""Each moment to die once, whatever fails."""
MANY = ("memory", False, 300)
"""With the most to do. Time grows faster than the number of requests, so there are hundreds of them by night only."""
CASES = [
    *(Case(*way, requests=100) for way in (*FEW, WAYS[-2])),
    pytest.param(Case(*MANY, requests=200), marks=pytest.mark.nightly),
    *(pytest.param(Case(*way, requests=500), marks=pytest.mark.nightly) for way in WAYS),
]


@pytest.fixture
def another(request: pytest.FixtureRequest, ram: Path, clock: FakeClock) -> Iterator[Opens]:
    """On one store of the kind that the case says."""
    stores: list[Store] = []
    make = maker(request.getfixturevalue("case").store, ram)

    def open_one(**options: Any) -> Broker:
        stores.append(make())
        stores[-1].remind(3_600, lambda: None)  # only the test says that a process lives
        return Broker(stores[-1], clock, people=PEOPLE)

    yield open_one
    for store in stores:
        store.close()


@pytest.mark.parametrize("case", CASES, ids=str)
async def test_after_ten_minutes_everything_was_shown_once_and_in_order(
    another: Opens, clock: FakeClock, case: Case
) -> None:
    outage = Outage(another, clock, case)
    await outage.happens()
    main = outage.main
    assert len(outage.asked) == case.requests and len(outage.runs) == case.runs
    assert len(main.messages) == len(main.places), "something is shown twice"
    for run, asked in outage.runs.items():
        order = [one for one in main.order(run) if one not in outage.on_its_way]
        assert order == [one for one in asked if one in order], "in the order they were asked"
        assert set(main.order(run)) == {one for one in asked if one in main.places}
    unseen = set(outage.asked) - set(main.places)
    assert unseen <= outage.answered_unseen, "only what somebody answered elsewhere before it could be shown"
    assert outage.answered_unseen - unseen <= outage.on_its_way, "of which is shown what may have stood there already"
    for request, place in main.places.items():
        stored, notice = await outage.broker.get(request), main.messages[place]
        assert isinstance(notice, Asked)
        assert notice.request.version == stored.version and notice.request.state is stored.state
    troubled = await troubles_of(outage.broker.ledger, outage.asked)
    assert not set(troubled) - outage.answered_unseen - outage.on_its_way, "the inbox tells no more than is so"
    assert len(main.tries) < 4 * case.requests, "an outage is not met with more and more tries"
