"""What becomes of stores where a process forks: the child uses and closes nothing, and the parent loses nothing."""

from __future__ import annotations

import asyncio
import gc
import os
import sqlite3
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests import start
from tests.store.children import forked
from tests.store.test_sqlite import entries, note

from signoff.errors import StoreUnavailable
from signoff.ports import Transaction
from signoff.store.durable_store import IN_FORK
from signoff.store.sqlite import SqliteStore
from signoff.store.upkeep import check
from signoff.store.writer import Batch, Work

PATIENCE = 60
"""Seconds for what comes at once, on a machine that is busy."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    tmp_path.chmod(0o700)
    return tmp_path / "signoff.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(path)
    yield store
    store.close()


async def test_a_forked_process_is_told_what_to_do_instead(path: Path, store: SqliteStore, tmp_path: Path) -> None:
    await store.write("note", note(1))

    def child() -> list[str]:
        async def used() -> list[str]:
            uses = (
                lambda: store.write("note", note(2)),
                lambda: store.read(lambda tx: tx.record.head()),
                store.flush,
            )
            at_once = (
                lambda: store.later("note", note(2)),
                lambda: store.watch(lambda: None),
                lambda: SqliteStore(path),
                lambda: SqliteStore(tmp_path / "another.db"),
            )
            told: list[str] = []
            for use in uses:
                with pytest.raises(StoreUnavailable) as refused:
                    await use()
                told.append(str(refused.value))
            for call in at_once:
                with pytest.raises(StoreUnavailable) as refused:
                    call()
                told.append(str(refused.value))
            store.close()
            return told

        return asyncio.run(used())

    told = await asyncio.to_thread(forked, child)
    assert set(told) == {IN_FORK} and len(told) == 7
    assert "open the store after the fork" in IN_FORK and "or start processes with `spawn`" in IN_FORK
    assert not (tmp_path / "another.db").exists()
    await store.write("note", note(3))
    assert [one.body for one in await entries(store)] == ['{"n":1}', '{"n":3}']


async def test_a_process_that_is_forked_while_no_store_is_open_may_open_one(path: Path) -> None:
    store = SqliteStore(path)
    await store.write("note", note(1))
    store.close()

    def child() -> None:
        own = SqliteStore(path)
        asyncio.run(own.write("note", note(2)))
        own.close()

    await asyncio.to_thread(forked, child)
    again = SqliteStore(path)
    assert len(await entries(again)) == 2
    again.close()


INSIDE = """
import asyncio, os, sqlite3, sys, threading
from tests.contracts.samples import draft
from signoff.errors import StoreUnavailable
from signoff.store.sqlite import SqliteStore
from signoff.store.upkeep import check

path = sys.argv[1]
store, begun, over = SqliteStore(path), threading.Event(), threading.Event()
store.watch(lambda: None)
asyncio.run(store.read(lambda tx: tx.record.head()))

def large(tx):
    for number in range(60):  # more than SQLite keeps in memory: half of it is in the log before it is committed
        tx.settings.put(f"text {number}", "x" * 100_000)
    begun.set()
    assert over.wait(60)
    tx.settings.put("last", "y")

writing = threading.Thread(target=lambda: asyncio.run(store.write("much", large)))
writing.start()
assert begun.wait(60)
child = os.fork()
if not child:
    try:
        asyncio.run(store.write("more", lambda tx: tx.settings.put("child", "z")))
    except StoreUnavailable as error:
        print("refused", flush=True)
    store.close()
    del store
    sys.exit()  # as a worker of a server ends: Python drops all there is
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
other = sqlite3.connect(path, timeout=0, isolation_level=None)
try:
    other.execute("begin immediate")
    print("the lock is gone")
except sqlite3.OperationalError as error:
    print(error)
other.close()
over.set()
writing.join()
print(asyncio.run(store.read(lambda tx: [len(tx.settings.get(f"text {number}") or "") for number in range(60)]))
    == [100_000] * 60, asyncio.run(store.read(lambda tx: (tx.settings.get("last"), tx.settings.get("child")))))
store.close()
print(check(f"sqlite:{path}"))
"""


def test_a_fork_inside_a_transaction_costs_the_parent_nothing(path: Path) -> None:
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", INSIDE, str(path)]
    done = start.run(command, fresh=True, capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["refused", "0", "database is locked", "True ('y', None)", "[]"]
    with sqlite3.connect(path) as connection:
        assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
    connection.close()


@pytest.mark.skipif(sys.platform != "linux", reason="it looks at /proc")
async def test_what_a_forked_process_drops_stays_open(path: Path) -> None:
    """SQLite would end it as the last one who uses the file, with what it remembers of locks that it does not have."""
    stores = [SqliteStore(path)]
    await stores[0].read(lambda tx: tx.record.head())

    def files() -> int:
        links = [f"/proc/self/fd/{number}" for number in os.listdir("/proc/self/fd")]
        return sum(os.path.islink(one) and os.readlink(one) == str(path) for one in links)

    def child() -> tuple[int, int]:
        before = files()
        stores.pop().close()
        gc.collect()
        return before, files()

    before, after = await asyncio.to_thread(forked, child)
    assert before == after > 0
    stores[0].close()
    assert files() == 0


def fork() -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking beside threads: which is what is tested
        return os.fork()


def code(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


async def test_the_child_of_a_fork_in_a_write_writes_nothing(path: Path, store: SqliteStore) -> None:
    parent, children = os.getpid(), list[int]()

    def write(tx: Transaction) -> object:
        children.append(fork())
        if os.getpid() != parent:
            threading.Thread(target=lambda: os._exit(ended_with())).start()
        return note(1)(tx)

    def ended_with() -> int:
        told.wait(PATIENCE)
        return 0 if errors == [IN_FORK] else 1

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
    assert check(f"sqlite:{path}") == []


@pytest.mark.skipif(sys.platform != "linux", reason="it calls the fork of the C library")
def test_a_program_that_forks_without_telling_python_is_noticed(path: Path) -> None:
    """As uWSGI does."""
    code = """
import asyncio, ctypes, os, sys
from signoff import Signoff
from signoff.errors import SignoffError
from signoff.store.sqlite import SqliteStore

gate = Signoff([{"allow": "*"}], store=sys.argv[1])
asyncio.run(gate.broker.switch.halt(by="ana"))
child = ctypes.PyDLL(None).fork()
if child:
    assert os.waitpid(child, 0)[1] == 0
    asyncio.run(gate.broker.switch.unhalt(by="ana"))
    sys.exit()
for use in (lambda: asyncio.run(gate.broker.switch.halt(by="ben")), lambda: SqliteStore(sys.argv[2])):
    try:
        use()
    except SignoffError as error:
        print(error, flush=True)
"""
    done = start.run(
        [sys.executable, "-c", code, f"sqlite:{path}", str(path)], fresh=True, capture_output=True, text=True
    )
    assert (done.stdout, done.stderr, done.returncode) == (f"{IN_FORK}\n" * 2, "", 0)
