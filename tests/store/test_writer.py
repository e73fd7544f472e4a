"""The one thread that writes: what comes together is committed together, and every piece stands for itself."""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from signoff.errors import StoreError, WrongUse
from signoff.ports import Transaction
from signoff.store.writer import MOST, Batch, Work, Writer, WriteResult

SOON = 60.0
"""Seconds until what has to happen on the slowest machine counts as missing."""
TX: Any = object()


class Disk:
    """A database in a list: what is committed is in `batches`. Syncing takes as long as the test says."""

    def __init__(self) -> None:
        self.batches: list[list[Any]] = []
        self.error: Exception | None = None
        self.may_sync = threading.Event()
        self.may_sync.set()
        self.is_syncing = threading.Semaphore(0)
        self.threads: set[int] = set()

    def transact(self, works: Sequence[Work], synced: bool) -> Batch:
        self.threads.add(threading.get_ident())
        outcomes: list[WriteResult] = []
        for work in works:
            try:
                outcomes.append(WriteResult(work(TX)))
            except BaseException as error:
                outcomes.append(WriteResult(error=error))
        self.is_syncing.release()
        assert self.may_sync.wait(SOON)
        if self.error is not None:
            raise self.error
        self.batches.append([outcome.value for outcome in outcomes if outcome.error is None])
        return Batch(outcomes)

    @contextmanager
    def slow(self) -> Iterator[None]:
        """While inside, no commit ends."""
        self.may_sync.clear()
        yield
        self.may_sync.set()

    async def syncs(self) -> None:
        """Wait until a commit has begun to sync."""
        assert await asyncio.to_thread(self.is_syncing.acquire, timeout=SOON)


@contextmanager
def warned() -> Iterator[list[str]]:
    """What is warned about, in any thread."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        texts: list[str] = []
        yield texts
        texts += [str(one.message) for one in caught]


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
def writer(disk: Disk) -> Iterator[Writer]:
    made = Writer(disk.transact)
    yield made
    made.close()


def gives(value: Any) -> Callable[[Transaction], Any]:
    return lambda tx: value


def fails(error: BaseException) -> Callable[[Transaction], Any]:
    def work(tx: Transaction) -> None:
        raise error

    return work


async def queued(writer: Writer, *works: Work) -> list[asyncio.Task[Any]]:
    """Started, and in the queue."""
    tasks = [asyncio.create_task(writer.write("work", work)) for work in works]
    await asyncio.sleep(0)
    return tasks


async def test_a_write_returns_what_the_work_returns_once_it_is_committed(disk: Disk, writer: Writer) -> None:
    with disk.slow():
        [task] = await queued(writer, gives(7))
        await disk.syncs()
        assert not task.done() and disk.batches == []
    assert await task == 7
    assert disk.batches == [[7]]


async def test_what_comes_while_a_commit_syncs_goes_into_the_next(disk: Disk, writer: Writer) -> None:
    with disk.slow():
        first = await queued(writer, gives(0))
        await disk.syncs()
        rest = await queued(writer, *(gives(number) for number in range(1, 17)))
    assert await asyncio.gather(*first, *rest) == list(range(17))
    assert disk.batches == [[0], list(range(1, 17))]
    assert writer.commits == 2


async def test_a_batch_has_an_end(disk: Disk, writer: Writer) -> None:
    with disk.slow():
        tasks = await queued(writer, gives(0))
        await disk.syncs()
        tasks += await queued(writer, *(gives(number) for number in range(1, 2 * MOST)))
    await asyncio.gather(*tasks)
    assert [len(batch) for batch in disk.batches] == [1, MOST, MOST - 1]


async def test_a_piece_that_raises_leaves_the_others_alone(disk: Disk, writer: Writer) -> None:
    with disk.slow():
        first = await queued(writer, gives(0))
        await disk.syncs()
        rest = await queued(writer, gives(1), fails(WrongUse("oops")), gives(2), fails(StopIteration()))
    done = await asyncio.gather(*first, *rest, return_exceptions=True)
    assert done[:2] == [0, 1] and done[3] == 2
    assert isinstance(done[2], WrongUse)
    assert isinstance(done[4], RuntimeError)
    assert disk.batches == [[0], [1, 2]]


async def test_later_rides_with_the_next_write_and_before_it(disk: Disk) -> None:
    writer = Writer(disk.transact, soon=SOON)
    writer.later("note", gives("a"))
    writer.later("note", gives("b"))
    assert await writer.write("work", gives("c")) == "c"
    assert disk.batches == [["a", "b", "c"]]
    writer.close()


async def test_later_comes_alone_if_nothing_else_does(disk: Disk, writer: Writer) -> None:
    writer.later("note", gives("a"))
    await disk.syncs()
    await writer.flush()
    assert disk.batches == [["a"]]


async def test_flush_waits_for_what_was_left_and_hurries_it_along(disk: Disk) -> None:
    writer = Writer(disk.transact, soon=1_000 * SOON)
    writer.later("note", gives("a"))
    assert writer.is_behind
    await asyncio.wait_for(writer.flush(), SOON)
    assert disk.batches == [["a"]]
    assert not writer.is_behind
    writer.close()


async def test_flush_with_nothing_to_do_does_nothing(disk: Disk, writer: Writer) -> None:
    await writer.flush()
    assert disk.batches == []
    assert disk.threads == set()


async def test_later_work_that_raises_is_told_and_does_not_stop_anything(disk: Disk, writer: Writer) -> None:
    with warned() as texts:
        writer.later("note", fails(WrongUse("oops")))
        await writer.flush()
    assert texts == ["signoff store: 'note' was not written: WrongUse('oops')"]
    assert await writer.write("work", gives(1)) == 1


async def test_a_store_that_fails_tells_whoever_waits_and_keeps_the_rest(disk: Disk, writer: Writer) -> None:
    disk.error = StoreError("full")
    with warned() as texts:
        writer.later("note", gives("a"))
        with pytest.raises(StoreError, match="full"):
            await writer.write("work", gives("b"))
        with pytest.raises(StoreError, match="full"):
            await writer.flush()
    assert texts == ["signoff store: deferred writes failed and will be retried: 1 x 'note': full"]
    disk.error = None
    assert await writer.write("work", gives("c")) == "c"
    assert disk.batches == [["a", "c"]]


async def test_what_was_kept_is_tried_again_without_anybody_asking(disk: Disk) -> None:
    writer = Writer(disk.transact, again=0.001)
    disk.error = StoreError("full")
    with warned() as texts:
        writer.later("note", gives("a"))
        await disk.syncs()
        disk.error = None
        while not disk.batches:
            await disk.syncs()
            await asyncio.sleep(0)
    writer.close()
    assert disk.batches == [["a"]]
    assert len(texts) >= 1


async def test_what_cannot_be_written_until_the_end_is_told(disk: Disk) -> None:
    writer = Writer(disk.transact)
    disk.error = StoreError("full")
    with warned() as texts:
        writer.later("note", gives("a"))
        writer.close()
    assert texts[-1] == "signoff store: deferred writes were lost, because the store was closed: 1 x 'note'"
    assert disk.batches == []


async def test_close_writes_what_is_left(disk: Disk) -> None:
    left: list[str] = []
    writer = Writer(disk.transact, soon=1_000 * SOON, leave=lambda: left.append("left"))
    tasks = await queued(writer, gives("a"))
    writer.later("note", gives("b"))
    writer.close()
    assert [value for batch in disk.batches for value in batch] == ["a", "b"]
    assert left == ["left"]
    assert await asyncio.gather(*tasks) == ["a"]
    writer.close()


async def test_a_closed_writer_says_so(writer: Writer) -> None:
    writer.close()
    with pytest.raises(StoreError, match="closed"):
        await writer.write("work", gives(1))
    with pytest.raises(StoreError, match="closed"):
        writer.later("note", gives(1))


async def test_whoever_gave_up_before_it_began_wants_nothing_done(disk: Disk, writer: Writer) -> None:
    with disk.slow():
        first = await queued(writer, gives(0))
        await disk.syncs()
        [given_up, other] = await queued(writer, gives(1), gives(2))
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
    assert await asyncio.gather(*first, other) == [0, 2]
    assert disk.batches == [[0], [2]]


async def test_giving_up_after_it_began_does_not_undo_it(disk: Disk, writer: Writer) -> None:
    with disk.slow():
        [task] = await queued(writer, gives(1))
        await disk.syncs()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert await writer.write("work", gives(2)) == 2
    assert disk.batches == [[1], [2]]


def test_many_threads_and_event_loops_share_one_writer(disk: Disk, writer: Writer) -> None:
    def one_thread(number: int) -> list[int]:
        async def main() -> list[int]:
            writer.later("note", gives(-1))
            return await asyncio.gather(*(writer.write("work", gives(number * 100 + n)) for n in range(20)))

        return asyncio.run(main())

    with ThreadPoolExecutor(8) as pool:
        done = list(pool.map(one_thread, range(8)))
    assert done == [[number * 100 + n for n in range(20)] for number in range(8)]
    asyncio.run(writer.flush())
    written = [value for batch in disk.batches for value in batch]
    assert sorted(written) == sorted([-1] * 8 + [value for values in done for value in values])
    assert len(disk.threads) == 1
    assert writer.commits == len(disk.batches)


def test_an_event_loop_that_is_gone_is_not_missed(disk: Disk, writer: Writer) -> None:
    async def hurry() -> None:
        await queued(writer, gives(1))
        await disk.syncs()

    with disk.slow():
        loop = asyncio.new_event_loop()
        loop.run_until_complete(hurry())
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()
    assert asyncio.run(writer.write("work", gives(2))) == 2
    assert disk.batches == [[1], [2]]


async def test_the_hook_is_called_again_and_again(writer: Writer) -> None:
    called = threading.Semaphore(0)

    def hook() -> None:
        called.release()

    writer.every, writer.idle = 0.001, hook
    assert not called.acquire(blocking=False), "nothing was written yet"
    await writer.write("work", gives(1))
    for _ in range(3):
        assert await asyncio.to_thread(called.acquire, timeout=SOON)
    writer.idle = None
    assert writer.idle is None


async def test_a_hook_may_be_set_when_the_thread_sleeps_already(writer: Writer) -> None:
    called = threading.Event()
    await writer.write("work", gives(1))
    writer.every, writer.idle = 0.001, called.set
    assert await asyncio.to_thread(called.wait, SOON)


async def test_a_hook_that_fails_is_told_and_called_again(writer: Writer) -> None:
    called = threading.Semaphore(0)

    def hook() -> None:
        called.release()
        raise WrongUse("oops")

    with warned() as texts:
        writer.every, writer.idle = 0.001, hook
        await writer.write("work", gives(1))
        for _ in range(2):
            assert await asyncio.to_thread(called.acquire, timeout=SOON)
        writer.close()
    assert "while the store is idle failed: WrongUse('oops')" in texts[0]


async def test_a_commit_nobody_needs_to_survive_a_power_cut_is_not_synced() -> None:
    asked: list[bool] = []

    def transact(works: Sequence[Work], synced: bool) -> Batch:
        asked.append(synced)
        return Batch([WriteResult() for _ in works])

    writer = Writer(transact)
    await writer.write("work", gives(1), synced=False)
    await writer.write("work", gives(1))
    writer.later("note", gives(1))
    await writer.write("work", gives(1), synced=False)
    writer.close()
    assert asked == [False, True, True]
    assert writer.commits == 2
