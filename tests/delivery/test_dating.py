"""A channel's own timeout: it only ever denies, and people get all of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.broker.conftest import kinds
from tests.delivery.posting import ANA, YES, Board, ask_all, post_for

from signoff.broker import Broker
from signoff.core.notice import Notice
from signoff.core.request import State
from signoff.core.verdict import OnTimeout, Requirement
from signoff.delivery import Route
from signoff.errors import StoreError
from signoff.ports import Transaction
from signoff.testing import FakeClock

MINUTE, SECOND = timedelta(minutes=1), timedelta(seconds=1)


class Slow(Board):
    """Takes its time with the first showing."""

    def __init__(self, clock: FakeClock, takes: timedelta) -> None:
        super().__init__()
        self._clock, self._takes = clock, takes

    async def show(self, notice: Notice, at: str = "", beside: str = "") -> str:
        place = await super().show(notice, at, beside)
        takes, self._takes = self._takes, timedelta()
        self._clock.advance(takes)
        return place


@pytest.mark.parametrize(
    "need",
    [
        Requirement(on_timeout=OnTimeout.ALLOW),
        Requirement(role="ops", quorum=2, on_timeout=OnTimeout.ALLOW),
        Requirement(on_timeout=OnTimeout.PARK),
        Requirement(role="ops", on_timeout=OnTimeout.ESCALATE, escalate_to="boss"),
    ],
)
async def test_it_makes_nothing_come_true_but_a_denial(broker: Broker, clock: FakeClock, need: Requirement) -> None:
    board = Board()
    post = post_for(broker, Route(board, timeout=5 * MINUTE))
    [request] = await ask_all(broker, "c1", need=need)
    await post.round()
    clock.advance(timedelta(days=30))
    await post.round()
    stored = await broker.get(request)
    assert (stored.state, stored.deadline, stored.escalated) == (State.PENDING, None, False)
    assert board.call(request) == stored
    assert "dated" not in await kinds(broker)


async def test_a_showing_that_takes_longer_than_the_timeout_leaves_all_of_it(broker: Broker, clock: FakeClock) -> None:
    board = Slow(clock, 45 * SECOND)
    post = post_for(broker, Route(board, timeout=30 * SECOND))
    [request] = await ask_all(broker, "c1")
    await post.round()
    stored = await broker.get(request)
    assert (stored.state, stored.deadline) == (State.PENDING, clock.now() + 30 * SECOND)
    assert board.call(request) == stored, "what was shown first said too little, and was drawn anew"
    [dated] = [
        one for one in await broker.store.read(lambda tx: tx.record.entries(request=request)) if one.kind == "dated"
    ]
    assert json.loads(dated.body)["deadline"] == (clock.now() + 30 * SECOND).isoformat()


async def test_a_moment_is_no_reason_to_draw_it_anew(broker: Broker, clock: FakeClock) -> None:
    board = Slow(clock, 3 * SECOND)
    [request] = await ask_all(broker, "c1")
    await post_for(broker, Route(board, timeout=MINUTE)).round()
    assert (await broker.get(request)).deadline == clock.now() + 57 * SECOND
    assert board.shown == [(request, 1)]


@pytest.mark.filterwarnings("ignore:the store failed")
async def test_while_the_store_is_away_no_time_is_lost(broker: Broker, clock: FakeClock) -> None:
    """It was shown, and then nobody's answer could be taken for longer than it waits."""
    board = Board()
    post = post_for(broker, Route(board, timeout=5 * MINUTE))
    [request] = await ask_all(broker, "c1")
    write, back, tries = broker.store.write, clock.now() + 10 * MINUTE, 0

    async def away(name: str, work: Callable[[Transaction], Any], **options: Any) -> Any:
        nonlocal tries
        if name == "shown" and clock.now() < back:
            tries += 1
            asyncio.get_running_loop().call_soon(clock.advance, MINUTE)
            raise StoreError("no connection")
        return await write(name, work, **options)

    broker.store.write = away  # pyright: ignore[reportAttributeAccessIssue]
    await post.round()
    assert tries > 1
    stored = await broker.get(request)
    assert (stored.state, stored.deadline) == (State.PENDING, clock.now() + 5 * MINUTE)
    assert board.call(request) == stored
    assert (await broker.answer(request, YES, by=ANA)).state is State.APPROVED
