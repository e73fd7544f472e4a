"""What a look costs, and what happens beside it: a store may let another thread do the looking."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.broker.conftest import Opens
from tests.delivery.posting import ANA, NO, Board, ask_all, post_for

from signoff.broker import Broker
from signoff.core.delivery import Delivery
from signoff.core.request import ApprovalRequest
from signoff.core.subject import Subject, SubjectKind
from signoff.delivery import Route
from signoff.delivery.batches import Batches
from signoff.delivery.plan import Planner
from signoff.delivery.routes import active_channels
from signoff.errors import StoreError
from signoff.ports import Transaction
from signoff.testing import FakeClock

SECOND = timedelta(seconds=1)


class Watched:
    """A transaction that notes what was asked of it, and does something before."""

    def __init__(self, tx: Transaction, before: Callable[[str], None]) -> None:
        self._tx = tx
        self._before = before

    def __getattr__(self, name: str) -> Any:
        return _WatchedPart(self, name, getattr(self._tx, name))

    def ask(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        """What is handed out in the place of a method."""
        self._before(name)
        return method


class _WatchedPart:
    """One noun of it."""

    def __init__(self, whole: Watched, name: str, part: object) -> None:
        self._whole = whole
        self._name = name
        self._part = part

    def __getattr__(self, name: str) -> Any:
        return self._whole.ask(f"{self._name}.{name}", getattr(self._part, name))


async def change(broker: Broker, *trails: str) -> None:
    """Somebody changes a delivery of each of these trails."""

    def work(tx: Transaction) -> None:
        for trail in trails:
            tx.deliveries.put(Delivery(channel="other", subject=Subject(SubjectKind.REQUEST, trail), trail=trail))

    await broker.store.write("change", work)


def agenda(*boards: Board) -> Planner:
    return Planner(active_channels([Route(board) for board in boards]), Batches())


async def look(broker: Broker, agenda: Planner, before: Callable[[str], None] = lambda name: None) -> None:
    now: datetime = broker.clock.now()
    await broker.store.read(lambda tx: agenda.look(Watched(tx, before), now))  # pyright: ignore[reportArgumentType]


async def test_a_look_reads_the_trails_that_somebody_changed(broker: Broker) -> None:
    trails = [f"run {number}" for number in range(5)]
    for trail in trails:
        await ask_all(broker, trail, run=trail)
    looks = agenda(Board())
    await look(broker, looks)
    await change(broker, *trails[:3])
    asked: list[str] = []
    await look(broker, looks, asked.append)
    assert asked.count("deliveries.find") == 3, "of those trails"
    await change(broker, trails[-1], trails[-1])
    asked.clear()
    await look(broker, looks, asked.append)
    assert asked.count("deliveries.find") == 1, "of that one trail"
    asked.clear()
    await look(broker, looks, asked.append)
    assert "deliveries.find" not in asked, "nothing has changed since"


async def test_everything_is_read_anew_where_something_was_lost(broker: Broker) -> None:
    """A server that falls may forget what was not synced, and a backup may be put back under a program that runs."""
    await ask_all(broker, "a", run="one")
    for lost in ("_changed", "_seen"):
        looks = agenda(Board())
        await look(broker, looks)
        setattr(looks, lost, 1_000)
        await change(broker, "one")
        asked: list[str] = []
        await look(broker, looks, asked.append)
        assert "deliveries.find" in asked and "queue.open" in asked
        asked.clear()
        await look(broker, looks, asked.append)
        assert "queue.open" not in asked, "once is enough"


async def test_a_look_that_is_cut_short_is_made_again_with_all_that_it_was_for(broker: Broker) -> None:
    [request] = await ask_all(broker, "a", run="one")
    looks = agenda(Board())
    await look(broker, looks)
    subject, due = Subject(SubjectKind.REQUEST, request), broker.clock.now() + SECOND
    row = Delivery(channel="board", subject=subject, trail="one", due=due)
    await broker.store.write("put", lambda tx: tx.deliveries.put(row))

    def breaks(name: str) -> None:
        if name == "deliveries.find":
            raise StoreError("no connection")

    with pytest.raises(StoreError):
        await look(broker, looks, breaks)
    plan = await broker.store.read(lambda tx: looks.look(tx, broker.clock.now()))
    assert plan.moment == due, "it read the delivery"
    asked: list[str] = []
    await look(broker, looks, asked.append)
    assert "deliveries.find" not in asked, "nothing has changed since"


async def test_a_question_costs_the_same_however_long_its_trail_is(another: Opens, clock: FakeClock) -> None:
    """Requests and deliveries of the trail that are over are not read again."""
    broker, board = another(), Board()
    post = post_for(broker, board)
    counts: list[int] = []
    reads, write, read = 0, broker.store.write, broker.store.read

    class Counting(Watched):
        def ask(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
            if name not in ("requests.of", "deliveries.find", "deliveries.last", "requests.opened_at"):
                return method

            def counted(*args: Any, **options: Any) -> Sequence[ApprovalRequest | Delivery | str]:
                nonlocal reads
                rows = method(*args, **options)
                reads += len(rows)
                return rows

            return counted

    def through(do: Callable[..., Any]) -> Callable[..., Any]:
        def done(*named: Any, **options: Any) -> Any:
            *name, work = named
            return do(*name, lambda tx: work(Counting(tx, lambda name: None)), **options)

        return done

    broker.store.write, broker.store.read = through(write), through(read)  # pyright: ignore[reportAttributeAccessIssue]
    for number in range(30):
        clock.advance(SECOND)
        reads = 0
        [request] = await ask_all(broker, f"c{number}", run="long")
        await post.round()
        await broker.answer(request, NO, by=ANA)
        await post.round()
        counts.append(reads)
    assert counts[8] == counts[-1], counts
