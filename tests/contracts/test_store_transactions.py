"""What every store promises about its transactions: all or nothing, one after the other, heard of everywhere."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from time import monotonic

import pytest
from tests.contracts import samples
from tests.contracts.databases import WATCHED, Database
from tests.contracts.samples import chained, delivery, draft, grant, request, run, segment

from signoff.core.conversation import ConversationLog
from signoff.core.lease import Lease
from signoff.core.lifecycle import Assigned
from signoff.errors import Stale, StoreError, WrongUse
from signoff.ports import Store, Transaction
from signoff.store.texts import KeptReply

SOON = 60.0
"""How long a test waits for what has to happen, on the slowest machine, before it fails."""
watched = pytest.mark.parametrize("database", WATCHED, indirect=True)


def setting(value: str, name: str = "name") -> Callable[[Transaction], None]:
    return lambda tx: tx.settings.put(name, value)


async def value_of(store: Store, name: str = "name") -> str | None:
    return await store.read(lambda tx: tx.settings.get(name))


def counted(tx: Transaction) -> int:
    """Count one more, on the record too."""
    count = int(tx.settings.get("count") or 0) + 1
    tx.settings.put("count", str(count))
    tx.record.append([draft(count, request=f"r{count % 7}")])
    return count


# --- all or nothing ---


def change_everything(tx: Transaction) -> None:
    """A change through every method that makes one."""
    tx.requests.add(request(1).changed_to(waiter="p1"))
    one = tx.requests.get("r0002")
    assert one is not None
    tx.requests.put(samples.claimed(samples.approved(one)).changed_to(version=1))
    tx.results.put("r0002", b"result")
    tx.grants.add(grant(1))
    tx.grants.put(grant(2, revoked_at=samples.NOON))
    tx.grants.put(grant(3, tool="other"))
    tx.runs.add(run(1))
    tx.runs.put(run(2, epoch=2))
    tx.segments.add(segment("", b"1"))
    tx.processes.put(samples.PROCESS)
    tx.delegations.add(samples.delegation("a", "b", 0, 9))
    tx.deliveries.put(delivery(1))
    tx.deliveries.put(delivery(2, trail="moved", live=False, shown=3))
    tx.deliveries.put(delivery(3, live=True))
    tx.record.append([draft(1, request="r0001", run="run0001"), draft(2)])
    tx.checkpoints.add(samples.CHECKPOINT)
    tx.leases.put(Lease(channel="discord", process="p2"))
    tx.readers.add("r0001", "digest", "ana")
    tx.policies.put("one", "other")
    tx.conversations.put(ConversationLog(name="discord:1", heard="2", recent=("2",), turns={"b": "run0002"}))
    tx.access_keys.put(samples.access_key(1))
    tx.access_keys.put(samples.access_key(2, used_at=samples.NOON))
    tx.access_keys.forget(samples.at(50))
    tx.comments.add(samples.comment("r0001", "why?"))
    tx.replies.put("ana", "second", KeptReply("sent", 200, "{}"), samples.at(60))
    tx.replies.forget(samples.at(50))
    tx.aap_requests.put(samples.aap_request(1))
    tx.aap_requests.put(samples.aap_request(2, decision=samples.AAP_APPROVED))
    tx.aap_requests.forget(samples.at(50))
    tx.aap_instances.put(samples.aap_instance(1, provisioner="cron", key="made-1"))
    tx.aap_instances.forget(samples.at(50))
    tx.settings.put("new", "x")
    tx.settings.put("name", "other")
    tx.settings.put("dropped", None)


CHANGES = 34
"""How many there are."""


def prepare(tx: Transaction) -> None:
    tx.requests.add(request(2, deadline=samples.at(5_000), run="run0002"))
    tx.grants.add(grant(2))
    tx.grants.add(grant(3))
    tx.runs.add(run(2))
    tx.deliveries.put(delivery(2))
    tx.deliveries.put(delivery(3, live=False))
    tx.record.append([draft(0, request="r0002")])
    tx.leases.put(Lease(channel="discord", process="p1"))
    tx.policies.put("one", "text")
    tx.conversations.put(ConversationLog(name="discord:1", heard="1", recent=("1",), turns={"a": "run0001"}))
    tx.access_keys.put(samples.access_key(2))
    tx.access_keys.put(samples.access_key(3, expires_at=samples.at(10)))
    tx.replies.put("ana", "first", KeptReply("sent", 201, "é"), samples.at(1))
    tx.aap_requests.put(samples.aap_request(2))
    tx.aap_requests.put(samples.aap_request(3, decision=samples.AAP_APPROVED))
    tx.aap_instances.put(samples.aap_instance(2, revoked_at=samples.NOON))
    tx.aap_instances.put(samples.aap_instance(3))
    tx.settings.put("name", "value")
    tx.settings.put("dropped", "value")


async def test_work_that_raises_half_way_leaves_nothing(store: Store) -> None:
    await store.write("prepare", prepare)
    before = await store.read(samples.everything)
    for steps in range(CHANGES):

        def work(tx: Transaction, steps: int = steps) -> None:
            change_everything(CutShort(tx, steps))  # pyright: ignore[reportArgumentType]

        with pytest.raises(WrongUse, match="half-way"):
            await store.write("fails", work)
        assert await store.read(samples.everything) == before
    await store.write("works", change_everything)
    after = await store.read(samples.everything)
    assert [name for name in before if before[name] == after[name]] == []
    chained(after["entries"])


class CutShort:
    """A transaction that breaks after some changes."""

    def __init__(self, tx: Transaction, steps: int) -> None:
        self._tx = tx
        self._left = steps

    def __getattr__(self, name: str) -> object:
        return _CutShortPart(self, getattr(self._tx, name))

    def count(self) -> None:
        if not self._left:
            raise WrongUse("half-way")
        self._left -= 1


class _CutShortPart:
    """One noun of it."""

    def __init__(self, whole: CutShort, part: object) -> None:
        self._whole = whole
        self._part = part

    def __getattr__(self, name: str) -> object:
        method = getattr(self._part, name)
        if name not in ("add", "put", "append", "drop", "forget"):
            return method

        def change(*args: object) -> None:
            self._whole.count()
            method(*args)

        return change


async def test_what_work_raises_is_what_the_caller_gets(store: Store) -> None:
    class Odd(Exception):
        pass

    def work(tx: Transaction) -> None:
        raise Odd("text")

    with pytest.raises(Odd, match="text"):
        await store.write("odd", work)
    with pytest.raises(Odd, match="text"):
        await store.read(work)
    await store.write("works", setting("x"))
    assert await value_of(store) == "x"


async def test_others_that_are_written_at_the_same_time_stay(store: Store) -> None:
    def work(number: int) -> Callable[[Transaction], int]:
        def add(tx: Transaction) -> int:
            tx.requests.add(request(number))
            tx.record.append([draft(number, request=f"r{number:04}")])
            if number % 3 == 0:
                raise WrongUse(f"number {number}")
            return number

        return add

    for number in (101, 102, 103, 104):
        if number % 3:
            store.later("add", work(number))
    outcomes = await asyncio.gather(
        *(store.write("add", work(number)) for number in range(1, 40)), return_exceptions=True
    )
    good = [n for n in range(1, 40) if n % 3]
    assert [outcome for outcome in outcomes if not isinstance(outcome, BaseException)] == good
    assert [str(outcome) for outcome in outcomes if isinstance(outcome, WrongUse)] == [
        f"number {n}" for n in range(3, 40, 3)
    ]
    kept = await store.read(samples.everything)
    assert [one.id for one in kept["open_requests"]] == [f"r{n:04}" for n in [*good, 101, 103, 104]]
    chained(kept["entries"])
    assert sorted(entry.request for entry in kept["entries"]) == [f"r{n:04}" for n in [*good, 101, 103, 104]]


async def test_a_read_changes_nothing(store: Store) -> None:
    await store.write("set", setting("x"))
    with suppress(Exception):
        await store.read(change_everything)
    with suppress(Exception):
        await store.read(setting("y"))
    await store.write("other", setting("z", "other"))
    assert await value_of(store) == "x"
    assert await store.read(lambda tx: tx.record.head()[0]) == 0


async def test_what_is_returned_is_handed_on(store: Store) -> None:
    assert await store.write("none", lambda tx: None) is None
    assert await store.write("text", lambda tx: "text") == "text"
    marker = object()
    assert await store.read(lambda tx: marker) is marker


async def test_work_whose_caller_gave_up_happens_whole_or_not_at_all(store: Store) -> None:
    tasks = [asyncio.create_task(store.write("count", counted)) for _ in range(20)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    last = await store.write("count", counted)
    kept = await store.read(samples.everything)
    chained(kept["entries"])
    assert len(kept["entries"]) == last
    done = [one for one in outcomes if isinstance(one, int)]
    assert len(set(done)) == len(done) and len(done) >= 10


# --- seen by others ---


async def test_two_stores_on_the_same_database_see_each_other(database: Database) -> None:
    one, other = database.open(), database.open()
    await one.write("set", setting("one"))
    assert await value_of(other) == "one"
    await other.write("set", setting("other"))
    assert await value_of(one) == "other"
    await one.write("append", lambda tx: tx.record.append([draft(1)]))
    await other.write("append", lambda tx: tx.record.append([draft(2)]))
    await one.write("append", lambda tx: tx.record.append([draft(3)]))
    entries = list(await other.read(lambda tx: tx.record.entries()))
    chained(entries)
    assert len(entries) == 3


async def test_of_two_who_replace_the_same_version_one_wins(database: Database) -> None:
    one, other = database.open(), database.open()
    await one.write("ask", lambda tx: tx.requests.add(request()))
    stored = await one.read(lambda tx: tx.requests.get("r0001"))
    assert stored is not None
    outcomes = await asyncio.gather(
        one.write("assign", lambda tx: tx.requests.put(samples.steps(stored, Assigned("ana")))),
        other.write("assign", lambda tx: tx.requests.put(samples.steps(stored, Assigned("ben")))),
        return_exceptions=True,
    )
    assert sorted(type(outcome) for outcome in outcomes if outcome is not None) == [Stale]


async def test_what_was_written_is_there_when_the_store_is_opened_again(database: Database) -> None:
    first = database.open()
    await first.write("prepare", prepare)
    first.later("change", change_everything)
    first.close()
    second = database.open()
    kept = await second.read(samples.everything)
    assert kept["settings"] == {"name": "other", "new": "x", "dropped": None}
    chained(kept["entries"])
    assert len(kept["entries"]) == 3
    assert second.is_durable is (database.name != "memory")


async def test_a_store_may_be_closed_twice(database: Database) -> None:
    store = database.open()
    store.close()
    store.close()


async def test_a_closed_store_says_so_at_once(database: Database) -> None:
    store = database.open()
    await store.write("set", setting("x"))
    store.close()
    if store.is_durable:  # in memory there is nothing to let go of
        with pytest.raises(StoreError, match="closed"):
            await store.write("set", setting("y"))
        with pytest.raises(StoreError, match="closed"):
            await value_of(store)
        with pytest.raises(StoreError, match="closed"):
            store.later("set", setting("y"))
    assert await value_of(database.open()) == "x"


# --- later ---


async def test_later_keeps_the_order_and_is_seen_at_once_by_its_own_process(store: Store) -> None:
    seen: list[int] = []

    def noted(number: int) -> Callable[[Transaction], None]:
        def work(tx: Transaction) -> None:
            tx.record.append([draft(number)])

        return work

    for number in range(1, 6):
        store.later("note", noted(number))
        if number % 2:
            seen.append(await store.read(lambda tx: tx.record.head()[0]))
    await store.write("note", noted(6))
    store.later("note", noted(7))
    assert seen == [1, 3, 5]
    entries = await store.read(lambda tx: tx.record.entries())
    assert [entry.body for entry in entries] == [f'{{"n":{n}}}' for n in range(1, 8)]


async def test_a_write_sees_what_was_left_for_later_before_it(store: Store) -> None:
    store.later("set", setting("earlier"))
    assert await store.write("look", lambda tx: tx.settings.get("name")) == "earlier"


async def test_later_is_durable_after_a_flush(database: Database) -> None:
    one, other = database.open(), database.open()
    one.later("set", setting("x"))
    await one.flush()
    assert await value_of(other) == "x"
    await one.flush()


@watched
async def test_later_needs_nobody_to_push_it(database: Database) -> None:
    one, other = database.open(), database.open()
    woken, stop = listen(other)
    one.later("set", setting("x"))
    while await value_of(other) != "x":
        await asyncio.wait_for(woken.wait(), SOON)
        woken.clear()
    stop()


async def test_what_fails_later_is_told_and_undone_alone(store: Store) -> None:
    def work(tx: Transaction) -> None:
        tx.settings.put("half", "x")
        raise WrongUse("oops")

    async def leave_all() -> None:
        store.later("good", setting("x"))
        store.later("the bad one", work)
        store.later("good too", setting("y", "other"))
        await store.flush()

    with pytest.warns(RuntimeWarning, match=r"'the bad one'.*oops"):
        await leave_all()
    assert [await value_of(store, name) for name in ("name", "half", "other")] == ["x", None, "y"]


async def test_work_may_leave_something_for_later(store: Store) -> None:
    def work(tx: Transaction) -> None:
        store.later("set", setting("later"))
        tx.settings.put("name", "now")

    def fails(tx: Transaction) -> None:
        store.later("set", setting("all the same", "other"))
        raise WrongUse("oops")

    await store.write("set", work)
    with pytest.raises(WrongUse):
        await store.write("fails", fails)
    await store.flush()
    assert await value_of(store) == "later"
    assert await value_of(store, "other") == "all the same"


# --- watching ---


def listen(store: Store) -> tuple[asyncio.Event, Callable[[], None]]:
    """An event that is set when something changed."""
    loop, woken = asyncio.get_running_loop(), asyncio.Event()
    return woken, store.watch(lambda: loop.call_soon_threadsafe(woken.set))


async def heard(watching: Store, writing: Store, number: int) -> float:
    """Seconds from the end of a write until whoever watches knows what was written."""
    woken, stop = listen(watching)
    await writing.write("set", setting(f"before {number}"))
    while await value_of(watching) != f"before {number}":  # by then it listens
        await asyncio.wait_for(woken.wait(), SOON)
        woken.clear()
    await writing.write("set", setting(str(number)))
    written = monotonic()
    while await value_of(watching) != str(number):
        await asyncio.wait_for(woken.wait(), SOON)
        woken.clear()
    await asyncio.wait_for(woken.wait(), SOON)
    took = monotonic() - written
    stop()
    return took


@watched
async def test_a_change_made_elsewhere_is_heard_within_a_tenth_of_a_second(database: Database) -> None:
    watching, writing = database.open(), database.open()
    times = sorted([await heard(watching, writing, number) for number in range(5)])
    assert times[2] < 0.1, times  # a busy machine may be late now and then


@watched
async def test_a_change_made_here_is_heard_too(store: Store) -> None:
    times = sorted([await heard(store, store, number) for number in range(5)])
    assert times[2] < 0.1, times


@watched
async def test_everyone_who_watches_hears_until_they_stop(database: Database) -> None:
    watching, writing = database.open(), database.open()
    ticks: list[str] = []
    stop_first = watching.watch(lambda: ticks.append("first"))
    woken, stop = listen(watching)
    await writing.write("set", setting("1"))
    await asyncio.wait_for(woken.wait(), SOON)
    stop_first()
    stop_first()
    stop()
    woken, stop = listen(watching)
    ticks.clear()
    await writing.write("set", setting("2"))
    await asyncio.wait_for(woken.wait(), SOON)
    stop()
    assert ticks == []


async def test_a_watcher_that_fails_silences_nobody(database: Database) -> None:
    watching, writing = database.open(), database.open()

    def fail() -> None:
        raise WrongUse("oops")

    async def watch_and_write() -> None:
        watching.watch(fail)
        woken, _ = listen(watching)
        await writing.write("set", setting("1"))
        await asyncio.wait_for(woken.wait(), SOON)
        watching.close()  # and with it whatever would call the one that fails again

    with pytest.warns(RuntimeWarning, match="watcher failed"):
        await watch_and_write()


# --- many at once ---


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """All at once, taking turns as often as threads can."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(count) as pool:
            for future in [pool.submit(work, number) for number in range(count)]:
                future.result()
    finally:
        sys.setswitchinterval(usual)


def test_many_threads_write_at_once_each_with_an_event_loop_of_its_own(database: Database) -> None:
    stores = [database.open(), database.open()]
    seen: list[int] = []

    def work(number: int) -> None:
        async def count() -> None:
            for _ in range(10):
                seen.append(await stores[number % 2].write("count", counted))

        asyncio.run(count())

    in_threads(8, work)
    assert sorted(seen) == list(range(1, 81))
    kept = asyncio.run(_everything(stores[0]))
    chained(kept["entries"])
    assert len(kept["entries"]) == 80


async def _everything(store: Store) -> dict[str, list[object]]:
    return await store.read(samples.everything)


def test_one_loop_after_the_other_may_use_a_store(store: Store) -> None:
    for number in range(1, 4):
        assert asyncio.run(store_count(store)) == number


async def store_count(store: Store) -> int:
    return await store.write("count", counted)


def test_a_read_sees_one_moment_however_much_is_written(database: Database) -> None:
    """Whoever looks for what changed and how far the record goes must not miss what came in between."""
    writing, reading = database.open(), database.open()
    done = threading.Event()

    def write() -> None:
        async def all_of_them() -> None:
            for _ in range(60):
                await writing.write("count", counted)

        try:
            asyncio.run(all_of_them())
        finally:
            done.set()

    def look(tx: Transaction) -> tuple[int, int, int, str | None]:
        touched, entries = len(tx.record.touched(0)), tx.record.entries()
        return touched, len(entries), tx.record.head()[0], tx.settings.get("count")

    async def read() -> list[tuple[int, int, int, str | None]]:
        seen = [await reading.read(look)]
        while not done.is_set():
            seen.append(await reading.read(look))
        return seen

    writer = threading.Thread(target=write)
    writer.start()
    seen = asyncio.run(read())
    writer.join()
    assert all(len({entries, head, int(count or 0)}) == 1 for _, entries, head, count in seen)
    assert all(touched == min(head, 7) for touched, _, head, _ in seen)
    assert [head for _, _, head, _ in seen] == sorted(head for _, _, head, _ in seen)
