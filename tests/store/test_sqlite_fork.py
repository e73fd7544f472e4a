"""What becomes of SQLite stores where a process forks."""

from __future__ import annotations

import asyncio
import gc
import os
import select
import sqlite3
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from tests import start
from tests.profiles import NIGHTLY
from tests.store.children import ended, forked, started
from tests.store.test_sqlite import LEAVER, entries, note

from signoff.broker import Broker
from signoff.errors import RunTaken, StoreError, StoreUnavailable
from signoff.ports import Transaction
from signoff.processes import renew_after_fork
from signoff.store import sqlite_fork
from signoff.store.sqlite import SqliteStore
from signoff.store.writer import Batch, Work
from signoff.testing.office import soon

PATIENCE = 60
"""Seconds for what comes at once, on a machine that is busy."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "signoff.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(path)
    yield store
    store.close()


async def test_what_a_forked_process_wrote_is_there_after_its_parent_closed_the_file(path: Path) -> None:
    store = SqliteStore(path)
    store.watch(lambda: None)
    await store.write("note", note(1))
    (written, tell_written), (closed, tell_closed) = os.pipe(), os.pipe()

    def child() -> None:
        asyncio.run(store.write("note", note(2)))
        os.write(tell_written, b"x")
        os.read(closed, 1)
        asyncio.run(store.write("note", note(3)))

    def close() -> None:
        assert select.select([written], [], [], PATIENCE)[0], "the child has not written"
        store.close()
        os.write(tell_closed, b"x")

    closing = asyncio.create_task(asyncio.to_thread(close))
    await asyncio.to_thread(forked, child)
    await closing
    for one in (written, tell_written, closed, tell_closed):
        os.close(one)
    again = SqliteStore(path)
    assert [entry.body for entry in await entries(again)] == [f'{{"n":{number}}}' for number in (1, 2, 3)]
    again.close()


async def test_what_others_write_while_a_process_forks_is_noticed(path: Path, store: SqliteStore) -> None:
    await store.write("note", note(1))
    ticks: list[int] = []
    store.watch(lambda: ticks.append(1))
    await soon(lambda: bool(ticks), "the watcher does not look")
    sqlite_fork._before()
    ended(started(LEAVER, path))
    ticks.clear()
    sqlite_fork._after_in_parent()
    await soon(lambda: bool(ticks), "a change between two connections was missed")


async def test_somebody_who_reads_without_a_pause_does_not_keep_a_process_from_forking(store: SqliteStore) -> None:
    await store.write("note", note(1))
    stop, reads = threading.Event(), list[int]()

    async def read() -> None:
        while not stop.is_set():
            reads.append(len(await entries(store)))

    beside = threading.Thread(target=lambda: asyncio.run(read()))
    beside.start()
    try:
        await soon(lambda: bool(reads), "nobody reads")
        for _ in range(5):
            await asyncio.to_thread(forked, lambda: asyncio.run(store.write("note", note(2))))
    finally:
        stop.set()
        beside.join()
    assert len(await entries(store)) == 6


async def test_a_process_forked_in_the_middle_of_a_use_is_told_that_it_must_not_use_it(store: SqliteStore) -> None:
    await store.write("note", note(1))

    def child() -> str:
        with ThreadPoolExecutor(1) as threads, pytest.raises(StoreUnavailable) as refused:
            threads.submit(asyncio.run, store.write("note", note(2))).result()
        return str(refused.value)

    said = await store.read(lambda tx: forked(child))
    assert "forked while SQLite was in use in its parent" in said
    await store.write("note", note(3))
    assert len(await entries(store)) == 2


async def test_a_store_that_is_dropped_is_not_open_when_the_process_forks(path: Path) -> None:
    await SqliteStore(path).read(lambda tx: None)
    gc.collect()
    await asyncio.to_thread(forked, lambda: asyncio.run(SqliteStore(path, patience=5).write("note", note(1))))
    again = SqliteStore(path)
    assert len(await entries(again)) == 1
    again.close()


async def test_a_process_forked_while_others_write_and_close_can_still_write(path: Path) -> None:
    """What SQLite remembers of the parent's locks is copied, and nobody would ever release them."""
    stop = threading.Event()

    def busy() -> None:
        async def write_and_close() -> None:
            other = SqliteStore(path)
            await other.write("note", note(1))
            other.close()

        while not stop.is_set():
            asyncio.run(write_and_close())

    def child() -> None:
        asyncio.run(SqliteStore(path, patience=5).write("note", note(2)))

    beside = threading.Thread(target=busy)
    beside.start()
    try:
        for _ in range(200 if NIGHTLY else 10):
            await asyncio.to_thread(forked, child)
    finally:
        stop.set()
        beside.join()


async def test_a_fork_does_not_wait_for_who_waits_for_another_process(path: Path, store: SqliteStore) -> None:
    await store.write("note", note(1))
    with closing(sqlite3.connect(path, isolation_level=None)) as holder:
        holder.execute("begin immediate")
        writing = asyncio.create_task(store.write("note", note(2)))
        await soon(lambda: any(sqlite_fork._uses.values()), "nobody waits for the lock")
        await asyncio.to_thread(forked, lambda: None)
        assert len(await entries(store)) == 1
        holder.execute("rollback")
    await writing
    assert len(await entries(store)) == 2


async def test_a_fork_in_a_transaction_does_not_wait_for_who_waits_for_its_lock(path: Path, store: SqliteStore) -> None:
    other = SqliteStore(path)

    async def write() -> None:
        await other.write("note", note(2))

    def fork(tx: object) -> None:
        beside = threading.Thread(target=lambda: asyncio.run(write()))
        beside.start()
        asyncio.run(soon(lambda: sum(sqlite_fork._uses.values()) > 1, "nobody waits for the lock"))
        forked(lambda: None)

    await store.write("fork", fork)
    await soon(lambda: other.commits == 1, "the other store gave up")
    other.close()


def test_a_signal_handler_may_fork_while_its_thread_waits_to_fork(path: Path) -> None:
    """As a server does that replaces a process that has died."""
    code = """
import concurrent.futures.thread  # if it comes later, its own hook does not bear a fork within a fork
import asyncio, os, signal, sys, threading
from signoff.store import sqlite_fork
from signoff.store.sqlite import SqliteStore

store, in_use, over = SqliteStore(sys.argv[1]), threading.Event(), threading.Event()

def read():
    def wait(tx):
        in_use.set()
        print("in time" if over.wait(sqlite_fork.LONGEST / 2) else "too late", flush=True)
    asyncio.run(store.read(wait))

def interrupt():
    while not sqlite_fork._forkers:
        os.sched_yield()
    signal.pthread_kill(threading.main_thread().ident, signal.SIGUSR1)

def fork():
    if (child := os.fork()) == 0:
        return True
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0

def handler(*_):
    if fork():
        os._exit(0)
    over.set()

signal.signal(signal.SIGUSR1, handler)
threading.Thread(target=read).start()
in_use.wait()
threading.Thread(target=interrupt).start()
if fork():
    asyncio.run(store.write("a change", lambda tx: tx.settings.put("any", "thing")))
    os._exit(0)
"""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code, str(path)]
    done = start.run(command, fresh=True, capture_output=True, text=True)
    assert (done.stdout, done.stderr, done.returncode) == ("in time\n", "", 0)


def test_who_comes_while_a_process_forks_does_not_count_as_a_user(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    drop = sqlite_fork.OpenConnections.close_unused

    def drop_and_come(connections: sqlite_fork.OpenConnections) -> None:
        drop(connections)
        sqlite_fork._uses[-1] = 1  # a thread on its way to the end of the queue

    monkeypatch.setattr(sqlite_fork.OpenConnections, "close_unused", drop_and_come)
    try:
        forked(lambda: asyncio.run(store.write("note", note(1))))
    finally:
        sqlite_fork._uses.pop(-1)


async def test_a_fork_that_was_interrupted_keeps_nobody_waiting(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_fork, "LONGEST", 0.01)
    sqlite_fork._before()
    await asyncio.to_thread(lambda: asyncio.run(store.write("note", note(1))))
    await asyncio.to_thread(forked, lambda: asyncio.run(store.write("note", note(2))))
    assert len(await entries(store)) == 2


def fork() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads: which is what is tested
        return os.fork()


def code(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


async def test_the_child_of_a_fork_in_a_write_writes_nothing(store: SqliteStore) -> None:
    parent, children = os.getpid(), list[int]()

    def write(tx: Transaction) -> object:
        children.append(fork())
        if os.getpid() != parent:
            threading.Thread(target=lambda: os._exit(ended_with())).start()
        return note(1)(tx)

    def ended_with() -> int:
        told.wait(PATIENCE)
        return 0 if "forked while SQLite was in use in its parent" in errors[0] else 1

    told, errors = threading.Event(), list[str]()
    transact = store._writer._transact

    def seen(works: Sequence[Work], synced: bool) -> Batch:
        try:
            return transact(works, synced)
        except StoreUnavailable as error:
            errors.append(str(error))
            raise
        finally:
            told.set()

    store._writer._transact = seen
    await store.write("note", write)
    assert code(children[0]) == 0
    await store.write("note", note(2))
    assert len(await entries(store)) == 2


@pytest.mark.skipif(sys.platform != "linux", reason="it calls the fork of the C library")
@pytest.mark.parametrize("is_open", [True, False])
def test_a_program_that_forks_without_telling_python_is_noticed(path: Path, is_open: bool) -> None:
    """As uWSGI does. Python's own fork would close what is open."""
    code = """
import asyncio, ctypes, os, sys
from signoff import Signoff
from signoff.errors import SignoffError

async def halt(gate):
    try:
        await gate.broker.switch.halt(by="ana")
    except SignoffError as error:
        print(error, flush=True)

gate = Signoff([{"allow": "*"}], store=sys.argv[1])
before = gate.broker.process.id
child = ctypes.PyDLL(None).fork()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
asyncio.run(halt(gate))
print(gate.broker.process.id != before, flush=True)
os._exit(0)
"""
    where = f"sqlite:{path}" if is_open else "memory:"
    done = start.run([sys.executable, "-c", code, where], capture_output=True, text=True)
    refused = "this process was forked while SQLite was in use in its parent" if is_open else ""
    assert (done.stdout.startswith(refused), done.stdout.endswith("True\n"), done.stderr) == (True, True, "")


def test_one_object_that_cannot_be_renewed_leaves_the_others_renewed(store: SqliteStore) -> None:
    class Broken:
        def renew(self) -> None:
            raise RuntimeError("a clock that is broken")

    broken = [Broken() for _ in range(20)]
    for one in broken:
        renew_after_fork(one)
    forked(lambda: asyncio.run(store.write("note", note(1))))
    assert len(asyncio.run(entries(store))) == 1


async def test_a_reader_that_ends_after_the_store_was_closed_leaves_no_file_open_for_a_fork(path: Path) -> None:
    store, in_use, over = SqliteStore(path), threading.Event(), threading.Event()

    def read() -> None:
        asyncio.run(store.read(lambda tx: (in_use.set(), over.wait(PATIENCE))))

    beside = threading.Thread(target=read)
    beside.start()
    await asyncio.to_thread(in_use.wait, PATIENCE)
    store.close()
    over.set()
    await asyncio.to_thread(beside.join, PATIENCE)
    await asyncio.to_thread(forked, lambda: asyncio.run(SqliteStore(path, patience=5).write("note", note(1))))
    assert not store._open
    assert not sqlite_fork._is_unusable


def test_threads_that_are_the_first_to_use_a_store_in_a_forked_process_share_one_writer(store: SqliteStore) -> None:
    asyncio.run(store.write("note", note(0)))

    def child() -> int:
        sys.setswitchinterval(1e-6)
        together = threading.Barrier(8)

        def write() -> None:
            together.wait(PATIENCE)
            asyncio.run(store.write("note", note(1)))

        with ThreadPoolExecutor(8) as threads:
            for done in [threads.submit(write) for _ in range(8)]:
                done.result(PATIENCE)
        return [one.name for one in threading.enumerate()].count("signoff store")

    children = 60 if NIGHTLY else 6
    assert {forked(child) for _ in range(children)} == {1}
    assert len(asyncio.run(entries(store))) == 1 + 8 * children


async def test_a_store_that_is_closed_is_closed_in_a_forked_process_too(path: Path) -> None:
    store = SqliteStore(path)
    await store.write("note", note(1))
    store.close()

    def child() -> None:
        with pytest.raises(StoreError, match="the store is closed"):
            asyncio.run(store.write("note", note(2)))

    await asyncio.to_thread(forked, child)


async def test_a_forked_process_holds_no_run_of_its_parent_and_keeps_those_it_takes(store: SqliteStore) -> None:
    broker = Broker(store)

    def child() -> str:
        with broker.runs.in_hand("one"):
            name = broker.process.id
            with pytest.raises(RunTaken), broker.runs.in_hand("one"):
                pass
        return name

    with broker.runs.in_hand("one"):
        assert await asyncio.to_thread(forked, child) != broker.process.id
        with pytest.raises(RunTaken), broker.runs.in_hand("one"):
            pass


def test_a_process_that_was_forked_in_a_read_uses_no_connection_of_its_parent_and_ends_quietly(path: Path) -> None:
    code = """
import asyncio, os, sys
from signoff.errors import StoreUnavailable
from signoff.store.sqlite import SqliteStore

store = SqliteStore(sys.argv[1])
store.watch(lambda: None)
child = asyncio.run(store.read(lambda tx: os.fork()))
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
store.watch(lambda: None)
for use in (
    lambda: store.read(lambda tx: tx.settings.get("any")),
    lambda: store.write("a change", lambda tx: tx.settings.put("any", "thing")),
):
    try:
        print(asyncio.run(use()))
    except StoreUnavailable:
        print("refused")
"""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", code, str(path)]
    for _ in range(40 if NIGHTLY else 2):  # it might find another thread of its parent in the middle of something
        done = start.run(command, capture_output=True, text=True)
        assert (done.stdout, done.stderr, done.returncode) == ("refused\nrefused\n", "", 0)
