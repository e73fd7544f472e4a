"""What every store promises about deliveries: one for each channel and subject, in the order they were first put."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from tests.contracts import samples
from tests.contracts.databases import Database
from tests.contracts.samples import RICH_DELIVERY, at, delivery

from signoff.core.delivery import Delivery, DeliveryState
from signoff.core.notice import RunResult
from signoff.core.run import RunSetup, RunState
from signoff.core.subject import Occasion, Subject, SubjectKind
from signoff.errors import WrongUse
from signoff.ports import Store, Transaction


async def put(store: Store, *deliveries: Delivery) -> None:
    """Each in a transaction of its own."""
    for one in deliveries:

        def work(tx: Transaction, one: Delivery = one) -> None:
            tx.deliveries.put(one)

        await store.write("put", work)


async def got(store: Store, channel: str, subject: str | Subject) -> Delivery | None:
    wanted = Subject.parse(subject) if isinstance(subject, str) else subject
    return await store.read(lambda tx: tx.deliveries.get(channel, wanted))


async def found(store: Store, **options: Any) -> list[Delivery]:
    return list(await store.read(lambda tx: tx.deliveries.find(**options)))


async def test_a_delivery_comes_back_as_it_was(store: Store) -> None:
    bare = Delivery(channel="discord", subject=Subject(SubjectKind.REQUEST, "r1"), trail="r1")
    await put(store, RICH_DELIVERY, bare)
    stored = await got(store, RICH_DELIVERY.channel, RICH_DELIVERY.subject)
    assert stored == RICH_DELIVERY
    assert type(stored.state) is DeliveryState
    assert await got(store, "discord", "r1") == bare
    assert await found(store) == [RICH_DELIVERY, bare]


@pytest.mark.parametrize("state", DeliveryState)
async def test_a_delivery_keeps_its_state(store: Store, state: DeliveryState) -> None:
    await put(store, delivery(1, state=state))
    stored = await got(store, "discord", "r0001")
    assert stored is not None and stored.state is state


async def test_each_channel_and_subject_has_one(store: Store) -> None:
    await put(store, delivery(1), delivery(1, channel="night"), delivery(2))
    assert await got(store, "night", "r0001") == delivery(1, channel="night")
    for channel, subject in (("discord", "r0003"), ("night", "r0002"), ("Discord", "r0001"), ("", ""), ("r0001", "")):
        assert await got(store, channel, subject) is None
    assert len(await found(store)) == 3


async def test_what_is_put_replaces_all_of_it(store: Store) -> None:
    failing = delivery(1, attempts=3, since=at(1), due=at(9), problem="Discord is away", place="1/")
    await put(store, failing)
    shown = delivery(1, state=DeliveryState.SHOWN, place="1/2", shown=0)
    await put(store, shown)
    assert await got(store, "discord", "r0001") == shown
    assert await found(store) == [shown]


async def test_a_delivery_keeps_its_place_however_often_it_changes(store: Store) -> None:
    await put(store, *(delivery(number) for number in (3, 1, 2)))
    await put(store, delivery(3, shown=1), delivery(1, live=False), delivery(1, live=True, shown=2), delivery(4))
    subjects = ["r0003", "r0001", "r0002", "r0004"]
    for options in ({}, {"live": True}, {"trail": "run0001"}, {"channel": "discord"}):
        assert [str(one.subject) for one in await found(store, **options)] == subjects


async def test_what_is_put_at_once_stays_in_order(store: Store) -> None:
    numbers = [5, 2, 9, 1]

    def work(tx: Transaction) -> None:
        for number in numbers:
            tx.deliveries.put(delivery(number))

    await store.write("put", work)
    assert [str(one.subject) for one in await found(store, trail="run0001")] == [f"r{number:04}" for number in numbers]


def is_of(one: Delivery, request: str) -> bool:
    return one.subject.kind in (SubjectKind.REQUEST, SubjectKind.REMINDER) and one.subject.about == request


async def test_each_filter_that_is_given_has_to_fit(store: Store) -> None:
    subjects = [
        Subject(SubjectKind.REQUEST, "r0001"),
        Subject(SubjectKind.REQUEST, "r0002"),
        Subject(SubjectKind.REMINDER, "r0001", Occasion.ESCALATED),
        Subject(SubjectKind.REMINDER, "r0001", Occasion.AGAIN),
        Subject(SubjectKind.BATCH, "r0001"),
        Subject(SubjectKind.RESULT, "r0001"),
    ]
    stored = [
        Delivery(channel=channel, subject=subject, trail=f"run000{1 + number // 2 % 2}", live=number % 3 != 0)
        for number, (channel, subject) in enumerate(product(("discord", "night"), subjects))
    ]
    await put(store, *stored)
    for channel, trail, request, live in product(
        ("", "discord", "nobody"), ("", "run0002", "nothing"), ("", "r0001", "nothing"), (False, True)
    ):
        fitting = [
            one
            for one in stored
            if channel in ("", one.channel) and trail in ("", one.trail) and (not request or is_of(one, request))
            if one.live or not live
        ]
        assert await found(store, channel=channel, trail=trail, request=request, live=live) == fitting


async def test_a_delivery_is_found_by_what_it_is_now(store: Store) -> None:
    await put(store, delivery(1), delivery(2))
    await put(store, delivery(1, trail="other", live=False))
    assert await found(store, trail="run0001") == [delivery(2)]
    assert await found(store, request="r0001", live=True) == []
    assert await found(store, live=True) == [delivery(2)]
    moved = delivery(1, trail="other", live=False)
    assert await found(store, trail="other") == await found(store, request="r0001") == [moved]
    await put(store, delivery(1))
    assert await found(store, live=True) == [delivery(1), delivery(2)]
    assert await found(store, trail="other") == []


@pytest.mark.parametrize("text", [samples.TEXT, samples.HALF, "\x00", "\x01json:", "\ud83e", "' or ''='"])
async def test_every_text_names_a_delivery(store: Store, text: str) -> None:
    subject = Subject(SubjectKind.REQUEST, text)
    odd = Delivery(channel=text, subject=subject, trail=text, problem=text, place=text)
    await put(store, odd, delivery(1))
    assert await got(store, text, subject) == odd
    for name in ("channel", "trail", "request"):
        assert await found(store, **{name: text}) == [odd]
    assert await found(store, channel=text, trail=text, request=text, live=True) == [odd]
    shown = replace(odd, state=DeliveryState.SHOWN, live=False)
    await put(store, shown)
    assert await found(store) == [shown, delivery(1)]


async def test_what_is_undone_leaves_order_and_filters_as_they_were(store: Store) -> None:
    await put(store, delivery(1), delivery(2, live=False))
    before = await store.read(samples.deliveries)

    def fails(tx: Transaction) -> None:
        tx.deliveries.put(delivery(3, trail="new"))
        tx.deliveries.put(delivery(1, trail="new", live=False))
        tx.deliveries.put(delivery(2, live=True))
        tx.deliveries.put(delivery(1))
        tx.deliveries.put(delivery(3, live=False))
        raise WrongUse("enough")

    with pytest.raises(WrongUse):
        await store.write("fails", fails)
    assert await store.read(samples.deliveries) == before
    assert await found(store, trail="new") == []
    await put(store, delivery(4), delivery(3))
    assert [str(one.subject) for one in await found(store)] == ["r0001", "r0002", "r0004", "r0003"]


async def test_others_see_deliveries_in_the_same_order(database: Database) -> None:
    one, other = database.open(), database.open()
    await put(one, delivery(2))
    await put(other, delivery(1))
    await put(one, delivery(2, shown=1), delivery(3))
    await put(other, delivery(1, shown=5))
    assert [(str(each.subject), each.shown) for each in await found(one)] == [("r0002", 1), ("r0001", 5), ("r0003", -1)]
    assert await found(other) == await found(one)


async def test_the_last_of_a_trail_in_a_channel_come_first(store: Store) -> None:
    await put(store, *(delivery(number) for number in (3, 1, 2)), delivery(4, channel="night"), delivery(5, trail="x"))
    await put(store, delivery(3, shown=1, live=False))

    async def last(limit: int, **where: str) -> list[str]:
        where = {"channel": "discord", "trail": "run0001", **where}
        return [str(one.subject) for one in await store.read(lambda tx: tx.deliveries.last(limit=limit, **where))]

    assert await last(2) == ["r0002", "r0001"]
    assert await last(9) == ["r0002", "r0001", "r0003"]
    assert await last(9, channel="night") == ["r0004"]
    assert await last(9, channel="") == await last(9, trail="nothing") == []


def said(number: int, state: RunState, **fields: Any) -> Delivery:
    """What was told of a run, as the broker keeps it."""
    run = f"run{number:04}"
    result = RunResult(run=run, state=state, worker="triage", text='I am going: "going"')
    return delivery(number, subject=result.key, trail=run, result=result, **fields)


async def test_runs_whose_end_was_not_told_are_found(store: Store) -> None:
    runs = [
        samples.run(1),
        samples.run(2, places={"discord": "1/"}),
        *(samples.run(number, state=RunState.DONE) for number in (3, 4, 5)),
        samples.run(6, state=RunState.FAILED, places={"discord": "1/"}),
        samples.run(7, state=RunState.DONE, places={"night": "1/"}),
        samples.run(8, state=RunState.CANCELLED, setup=RunSetup(model="x"), places={"night": "1/", "discord": "1/"}),
        samples.run(9, state=RunState.DONE, places={"discord": "1/"}),
        samples.run(10, state=RunState.DONE, places={"discord": "1/"}),
        samples.run(11, state=RunState.DONE, places={"d\u00efs%_\\k": "1/"}),
    ]

    def work(tx: Transaction) -> None:
        for run in runs:
            tx.runs.add(run)
        for number in (1, 4, 5):
            tx.deliveries.put(delivery(number, trail=f"run{number:04}"))
        for one in (said(5, RunState.DONE), said(9, RunState.FAILED), said(10, RunState.GOING)):
            tx.deliveries.put(one)

    await store.write("add", work)

    async def untold(channel: str) -> list[str]:
        return list(await store.read(lambda tx: tx.deliveries.untold(channel)))

    # Something of 4 stands there, 6 and 8 began there, and of 10 it was only said that it goes on.
    assert await untold("discord") == ["run0004", "run0006", "run0008", "run0010"]
    assert await untold("night") == ["run0007", "run0008"]
    assert await untold("d\u00efs%_\\k") == ["run0011"]
    assert await untold("nobody") == []


async def test_what_anybody_changed_is_found_by_its_number(database: Database) -> None:
    one, other = database.open(), database.open()
    last, trails = await one.read(lambda tx: tx.deliveries.changes(after=0))
    assert (last, list(trails)) == (0, [])
    await put(one, delivery(1), delivery(2, trail="x"))
    first = await other.read(lambda tx: tx.deliveries.changes(after=0))
    assert sorted(first.trails) == ["run0001", "x"]
    await put(other, delivery(2, trail="x", shown=1), delivery(3, trail="x"))
    second = await one.read(lambda tx: tx.deliveries.changes(after=first.last))
    assert second.last > first.last
    assert list(second.trails) == ["x"], "once, and not what was changed before"
    nothing = await one.read(lambda tx: tx.deliveries.changes(after=second.last))
    assert (nothing.last, list(nothing.trails)) == (second.last, [])

    def fails(tx: Transaction) -> None:
        tx.deliveries.put(delivery(1))
        raise WrongUse("enough")

    with pytest.raises(WrongUse):
        await one.write("fails", fails)
    undone = await one.read(lambda tx: tx.deliveries.changes(after=second.last))
    assert (undone.last, list(undone.trails)) == (second.last, [])
