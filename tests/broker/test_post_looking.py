"""What a look costs, and what happens beside it: a store may let another thread do the looking."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.broker.conftest import Opens
from tests.broker.posting import ANA, NO, Board, ask_all, post_for

from signoff.broker import Broker
from signoff.broker.agenda import Agenda
from signoff.broker.batches import Batches
from signoff.broker.post import Route
from signoff.broker.routes import lines_for
from signoff.core.delivery import Delivery
from signoff.core.request import ApprovalRequest
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
        self._before(name)
        return getattr(self._tx, name)


def agenda(*boards: Board) -> Agenda:
    return Agenda(lines_for([Route(board) for board in boards]), Batches())


async def look(broker: Broker, agenda: Agenda, before: Callable[[str], None] = lambda name: None) -> None:
    now: datetime = broker.clock.now()
    await broker.store.read(lambda tx: agenda.look(Watched(tx, before), now))  # pyright: ignore[reportArgumentType]


async def test_what_changes_during_a_look_is_seen_by_the_next(broker: Broker) -> None:
    trails = [f"run {number}" for number in range(5)]
    for trail in trails:
        await ask_all(broker, trail, run=trail)
    looks = agenda(Board())
    await look(broker, looks)
    for trail in trails[:3]:
        looks.touch(trail)
    await look(broker, looks, lambda name: looks.touch(trails[-1]))
    asked: list[str] = []
    await look(broker, looks, asked.append)
    assert asked.count("deliveries") == 1, "of that one trail"


async def test_a_look_that_is_cut_short_is_made_again_with_all_that_it_was_for(broker: Broker) -> None:
    [request] = await ask_all(broker, "a", run="one")
    looks = agenda(Board())
    await look(broker, looks)
    row = Delivery(channel="board", subject=request, trail="one", request=request, next_at=broker.clock.now() + SECOND)
    await broker.store.write("put", lambda tx: tx.deliveries.put(row))
    looks.touch("one")

    def breaks(name: str) -> None:
        if name == "deliveries":
            raise StoreError("no connection")

    with pytest.raises(StoreError):
        await look(broker, looks, breaks)
    plan = await broker.store.read(lambda tx: looks.look(tx, broker.clock.now()))
    assert plan.moment == row.next_at, "it read the delivery"
    asked: list[str] = []
    await look(broker, looks, asked.append)
    assert "deliveries" not in asked, "nothing has changed since"


async def test_a_question_costs_the_same_however_long_its_trail_is(another: Opens, clock: FakeClock) -> None:
    """Requests and deliveries of the trail that are over are not read again."""
    broker, board = another(), Board()
    post = post_for(broker, board)
    counts: list[int] = []
    reads, write, read = 0, broker.store.write, broker.store.read

    class Counting(Watched):
        def __getattr__(self, name: str) -> Any:
            found = super().__getattr__(name)
            if name not in ("requests_of", "deliveries", "last_deliveries", "asked_at"):
                return found

            def counted(*args: Any, **options: Any) -> Sequence[ApprovalRequest | Delivery | str]:
                nonlocal reads
                rows = found(*args, **options)
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
