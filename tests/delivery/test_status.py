"""Who read the whole of a long call, and what the inbox is told of channels that fail."""

from __future__ import annotations

import json
from datetime import timedelta

from tests.broker.conftest import Opens, kill, kinds
from tests.delivery.posting import ANA, NO, YES, Board, ask_all, post_for, rows

from signoff.broker import Broker
from signoff.broker.readers import has_read, note_reader
from signoff.core.lifecycle import Assigned, advance
from signoff.core.notice import Notice
from signoff.core.people import Actor
from signoff.core.request import State
from signoff.core.subject import Subject
from signoff.delivery.delivery_status import place_of, running_channels, show_again, troubles_of
from signoff.errors import ChannelFailed
from signoff.testing import FakeClock

BEN = Actor(name="ben")


async def test_who_was_given_the_whole_of_a_call_is_known_to_all_and_on_the_record(another: Opens) -> None:
    one, two = another(), another()
    first, second = await ask_all(one, "a", "b")
    await note_reader(one.ledger, first, ANA)
    await note_reader(one.ledger, first, ANA)
    assert await has_read(two.ledger, first, Actor(name=" ANA "))
    assert not await has_read(two.ledger, first, BEN)
    assert not await has_read(two.ledger, second, ANA)
    assert not await has_read(two.ledger, "nothing", ANA)
    assert await kinds(one, request=first) == ["asked", "opened"], "once"
    [_, opened] = await one.store.read(lambda tx: tx.record.entries(request=first))
    said = json.loads(opened.body)
    assert said == {"by": "ana", "args_digest": (await one.get(first)).args_digest}


async def test_what_was_read_is_bound_to_the_arguments(broker: Broker) -> None:
    [request] = await ask_all(broker, "a")
    await note_reader(broker.ledger, request, ANA)
    stored = await broker.get(request)
    other = stored.changed_to(args={"to": "eve", "amount": 5_000}, version=stored.version + 1)
    await broker.store.write("swap", lambda tx: tx.requests.put(other))
    assert not await has_read(broker.ledger, request, ANA)


async def test_a_channel_that_nobody_runs_any_longer_troubles_nobody(another: Opens) -> None:
    one, two, board = another(), another(), Board()
    board.fails = lambda notice: ChannelFailed("away", whole=True)
    [tried, waits] = [(await ask_all(one, name, run=name))[0] for name in ("a", "b")]
    await post_for(one, board).round()
    assert set(await troubles_of(two.ledger, [tried, waits])) == {tried, waits}
    [lease] = (await running_channels(two.ledger)).values()
    assert lease.process == one.process.id and lease.down is not None and lease.down.problem == "away"
    await kill(one)
    assert await running_channels(two.ledger) == {}


async def test_it_is_nowhere_to_be_found_where_it_was_not_shown(broker: Broker) -> None:
    board = Board()
    [request] = await ask_all(broker, "a")
    assert await place_of(broker.ledger, "board", Subject.parse(request)) == ""
    await post_for(broker, board).round()
    assert await place_of(broker.ledger, "board", Subject.parse(request)) == "board/1"
    assert await place_of(broker.ledger, "elsewhere", Subject.parse(request)) == ""
    await broker.answer(request, YES, by=ANA)
    assert await place_of(broker.ledger, "board", Subject.parse(request)) == "board/1"


async def test_what_is_settled_before_it_was_shown_anew_is_closed(broker: Broker) -> None:
    board = Board()
    post = post_for(broker, board)
    ids = await ask_all(broker, "a", "b")
    await post.round()
    for subject in (*ids, f"all:{ids[0]}"):
        await show_again(broker.ledger, "board", Subject.parse(subject))
    for request in ids:
        await broker.answer(request, NO, by=ANA)
    await post.round()
    assert {board.call(request).state for request in ids} == {State.DENIED}
    assert not board.together(ids[0]).is_live
    assert not any(one.live for one in await rows(broker))
    tries = len(board.tries)
    await post.round()
    assert len(board.tries) == tries


async def test_what_is_gone_while_an_update_fails_is_closed_once_it_works_again(
    broker: Broker, clock: FakeClock
) -> None:
    class Hidden(Board):
        async def show(self, notice: Notice, at: str = "", beside: str = "") -> str:
            if at:
                await show_again(broker.ledger, "board", Subject.parse(notice.subject))
            return await super().show(notice, at, beside)

    board = Hidden()
    post = post_for(broker, board)
    [request] = await ask_all(broker, "a")
    await post.round()
    board.fails = lambda notice: ChannelFailed("away")
    stored = await broker.get(request)
    await broker.store.write("take", lambda tx: tx.requests.put(advance(stored, Assigned("ana"), clock.now())))
    await broker.store.write(
        "note", lambda tx: tx.record.append([broker.ledger.journal.step(stored, "taken", clock.now())])
    )
    await post.round()
    board.fails = lambda notice: None
    await broker.answer(request, NO, by=ANA)
    clock.advance(timedelta(minutes=1))
    await post.round()
    assert board.call(request).state is State.DENIED
