"""What is particular about the store in memory: no record unless told to, and no growth by what is allowed."""

from __future__ import annotations

import pytest
from tests.contracts import samples
from tests.contracts.samples import draft, request

from signoff.core.record import START
from signoff.ports import Store
from signoff.store.memory_store import TOUCHED, MemoryStore


async def note(store: Store, *requests: str) -> None:
    await store.write("note", lambda tx: tx.record.append([draft(request=one) for one in requests]))


async def test_without_a_record_events_are_counted_and_forgotten() -> None:
    store = MemoryStore()
    await note(store, "a", "", "b", "a")
    assert await store.read(lambda tx: tx.record.head()) == (4, START)
    assert await store.read(lambda tx: list(tx.record.entries())) == []
    assert await store.read(lambda tx: list(tx.record.touched(0))) == ["a", "b"]
    assert await store.read(lambda tx: list(tx.record.touched(3))) == ["a"]
    assert await store.read(lambda tx: list(tx.record.touched(4))) == []


async def test_whoever_asks_about_what_was_forgotten_is_told_to_look_at_everything() -> None:
    store = MemoryStore()
    for number in (1, 2):
        await store.write("ask", lambda tx, number=number: tx.requests.add(request(number)))
    await note(store, "r0001")
    seen, _ = await store.read(lambda tx: tx.record.head())
    await note(store, *(["r0002"] * (TOUCHED + 1)))
    assert await store.read(lambda tx: list(tx.record.touched(seen - 1))) == ["r0001", "r0002"]
    assert await store.read(lambda tx: list(tx.record.touched(seen + 1))) == ["r0002"]


async def test_what_is_undone_is_not_counted() -> None:
    store = MemoryStore()
    await note(store, "a", "b")
    with pytest.raises(TypeError):
        await store.write("fails", lambda tx: [tx.record.append([draft(request="c"), draft()]), len(5)])  # type: ignore[arg-type]
    assert await store.read(lambda tx: (tx.record.head(), list(tx.record.touched(0)))) == ((2, START), ["a", "b"])


async def test_only_what_somebody_could_see_makes_a_tick() -> None:
    """A call that is allowed while somebody waits wakes nobody."""
    store = MemoryStore()
    ticks: list[str] = []
    stop = store.watch(lambda: ticks.append("tick"))
    await note(store, "", "")
    store.later("note", lambda tx: tx.record.append([draft()]))
    await store.read(lambda tx: tx.record.head())
    await store.write("nothing", lambda tx: tx.record.head())
    assert ticks == []
    await note(store, "a")
    assert ticks == ["tick"]
    stop()
    await note(store, "a")
    assert ticks == ["tick"]


async def test_a_tick_comes_after_the_change_and_may_look() -> None:
    store = MemoryStore()
    seen: list[str | None] = []

    def tick() -> None:
        seen.append(store._tx.settings.get("name"))  # pyright: ignore[reportPrivateUsage]
        stop()

    stop = store.watch(tick)
    await store.write("set", lambda tx: tx.settings.put("name", "value"))
    assert seen == ["value"]


@pytest.mark.parametrize("record", [False, True])
async def test_commits_count_writes_that_changed_something(*, record: bool) -> None:
    store = MemoryStore(record=record)
    await note(store, "a")
    await store.write("nothing", lambda tx: None)
    store.later("set", lambda tx: tx.settings.put("name", "value"))
    await store.read(lambda tx: tx.record.head())
    assert store.commits == 2
    assert not store.is_durable


async def test_requests_are_kept_as_they_are() -> None:
    """No copy and no other form of them is made on the way of every approval."""
    store = MemoryStore()
    given = samples.rich_request()
    await store.write("ask", lambda tx: tx.requests.add(given))
    assert await store.read(lambda tx: tx.requests.get("rich")) is given
