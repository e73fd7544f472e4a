"""Who read the whole of a long call, and what the inbox is told of channels that fail."""

from __future__ import annotations

import json
from datetime import timedelta

from tests.broker.conftest import Opens, kill, kinds
from tests.broker.posting import ANA, NO, YES, Board, ask_all, post_for, rows

from signoff.broker import Broker
from signoff.broker.post import Route
from signoff.core.lifecycle import Assigned, advance
from signoff.core.notice import Notice
from signoff.core.people import Answerer
from signoff.core.request import State
from signoff.errors import ChannelFailed
from signoff.testing import FakeClock

BEN = Answerer(name="ben")


async def test_who_was_given_the_whole_of_a_call_is_known_to_all_and_on_the_record(another: Opens) -> None:
    one, two = another(), another()
    first, second = await ask_all(one, "a", "b")
    await one.deliveries.opened(first, ANA)
    await one.deliveries.opened(first, ANA)
    assert await two.deliveries.has_opened(first, Answerer(name=" ANA "))
    assert not await two.deliveries.has_opened(first, BEN)
    assert not await two.deliveries.has_opened(second, ANA)
    assert not await two.deliveries.has_opened("nothing", ANA)
    assert await kinds(one, request=first) == ["asked", "opened"], "once"
    [_, opened] = await one.store.read(lambda tx: tx.record.entries(request=first))
    said = json.loads(opened.body)
    assert said == {"by": "ana", "args_digest": (await one.get(first)).args_digest}


async def test_what_was_read_is_bound_to_the_arguments(broker: Broker) -> None:
    [request] = await ask_all(broker, "a")
    await broker.deliveries.opened(request, ANA)
    stored = await broker.get(request)
    other = stored.changed_to(args={"to": "eve", "amount": 5_000}, version=stored.version + 1)
    await broker.store.write("swap", lambda tx: tx.requests.put(other))
    assert not await broker.deliveries.has_opened(request, ANA)


async def test_a_channel_that_nobody_runs_any_longer_troubles_nobody(another: Opens) -> None:
    one, two, board = another(), another(), Board()
    board.fails = lambda notice: ChannelFailed("away", whole=True)
    [tried, waits] = [(await ask_all(one, name, run=name))[0] for name in ("a", "b")]
    await post_for(one, board).round()
    assert set(await two.deliveries.troubles([tried, waits])) == {tried, waits}
    [lease] = (await two.deliveries.channels()).values()
    assert lease.process == one.process.id and lease.down is not None and lease.down.problem == "away"
    await kill(one)
    assert await two.deliveries.channels() == {}


async def test_a_backup_that_is_down_troubles_only_what_it_was_to_show(broker: Broker) -> None:
    main, night = Board("main"), Board("night")
    night.starts = lambda: ChannelFailed("no network")
    [one, two] = [(await ask_all(broker, name, run=name))[0] for name in ("a", "b")]
    main.fails = lambda notice: ChannelFailed("too long", again=False) if notice.subject == one else None
    await post_for(broker, Route(main), Route(night, backup_for="main")).round()
    troubles = await broker.deliveries.troubles([one, two])
    assert {one: [(each.channel, each.problem) for each in found] for one, found in troubles.items()} == {
        one: [("main", "too long"), ("night", "no network")]
    }


async def test_it_is_nowhere_to_be_found_where_it_was_not_shown(broker: Broker) -> None:
    board = Board()
    [request] = await ask_all(broker, "a")
    assert await broker.deliveries.where("board", request) == ""
    await post_for(broker, board).round()
    assert await broker.deliveries.where("board", request) == "board/1"
    assert await broker.deliveries.where("elsewhere", request) == ""
    await broker.answer(request, YES, by=ANA)
    assert await broker.deliveries.where("board", request) == "board/1"


async def test_what_is_settled_before_it_was_shown_anew_is_closed(broker: Broker) -> None:
    board = Board()
    post = post_for(broker, board)
    ids = await ask_all(broker, "a", "b")
    await post.round()
    for subject in (*ids, f"all:{ids[0]}"):
        await broker.deliveries.gone("board", subject)
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
                await broker.deliveries.gone("board", notice.subject)
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
