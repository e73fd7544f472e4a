"""The SQLite file: whose it is, what it is made of, and what is said when it cannot be used."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sqlite3
import stat
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests import start
from tests.contracts import samples
from tests.contracts.samples import draft, request
from tests.contracts.test_store_contract import chained
from tests.store.asked import ASKED, sql_of
from tests.store.children import ended, forked, started

from signoff.errors import StoreError, WrongUse
from signoff.ports import Transaction
from signoff.store import schema, sqlite_file
from signoff.store.dialect import SQLITE
from signoff.store.durable_store import Watchers
from signoff.store.sqlite import SqliteStore, _Looked
from signoff.store.sqlite_file import APPLICATION, connect


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "project" / ".signoff" / "signoff.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    made = SqliteStore(path)
    yield made
    made.close()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def note(number: int) -> Any:
    return lambda tx: tx.record.append([draft(number)])


async def entries(store: SqliteStore) -> list[Any]:
    return list(await store.read(lambda tx: tx.record.entries()))


# --- the file ---


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077], ids=oct)
async def test_only_its_owner_can_read_it(path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        store = SqliteStore(path)
        await store.write("note", note(1))
        assert mode(path.parent) == mode(path.parent.parent) == 0o700
        assert {one.name: mode(one) for one in path.parent.iterdir()} == {
            "signoff.db": 0o600,
            "signoff.db-wal": 0o600,
            "signoff.db-shm": 0o600,
        }
        store.close()
    finally:
        os.umask(before)


def test_a_directory_that_is_there_is_left_as_it_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    SqliteStore(tmp_path / "signoff.db").close()
    assert mode(tmp_path) == 0o755


@pytest.fixture
def synced(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a fresh process does: the other tests do not wait for the disk (tests/forkserver.py)."""
    monkeypatch.setattr(
        sqlite_file, "SYNCED", start.fresh("from signoff.store import sqlite_file as f; print(f.SYNCED, end='')")
    )


@pytest.mark.usefixtures("synced")
async def test_every_commit_is_on_disk_before_it_counts(path: Path) -> None:
    store = SqliteStore(path)
    seen: dict[str, object] = {}

    def look(tx: Any) -> None:
        connection = tx.sql._wire._connection
        for name in ("journal_mode", "synchronous", "foreign_keys", "application_id"):
            [seen[name]] = connection.execute(f"pragma {name}").fetchone()

    await store.write("look", look)
    assert seen == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "application_id": APPLICATION}
    store.close()


async def test_closing_leaves_one_file(store: SqliteStore, path: Path) -> None:
    await store.write("note", note(1))
    store.close()
    assert [one.name for one in path.parent.iterdir()] == ["signoff.db"]
    with pytest.raises(StoreError, match="closed"):
        await entries(store)


async def test_a_read_leaves_nothing_open(store: SqliteStore, path: Path) -> None:
    """An open snapshot would keep the log from being emptied, and it would grow without end."""
    await store.write("note", note(1))
    await entries(store)

    def fail(tx: Transaction) -> None:
        tx.record.entries()
        raise WrongUse("oops")

    with pytest.raises(WrongUse):
        await store.read(fail)
    await store.write("note", note(2))
    connection = connect(path)
    busy, log, done = connection.execute("pragma wal_checkpoint(truncate)").fetchone()
    connection.close()
    assert (busy, log, done) == (0, 0, 0)


async def test_a_read_cannot_write(store: SqliteStore) -> None:
    def around(tx: Any) -> None:
        tx.sql._wire._connection.execute("delete from settings")

    with pytest.raises(StoreError, match="`write` for changes"):
        await store.read(lambda tx: tx.settings.put("a", "b"))
    with pytest.raises(StoreError):
        await store.read(around)


# --- what it says ---


def refusal(path: Path, **options: Any) -> str:
    with pytest.raises(StoreError) as caught:
        SqliteStore(path, **options)
    assert str(path) in str(caught.value)
    return str(caught.value)


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    path = tmp_path / "signoff.db"
    path.write_bytes(b"Dear diary, " * 1_000)
    assert "is not a database" in refusal(path)
    assert path.read_bytes() == b"Dear diary, " * 1_000


def test_the_database_of_another_program_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "places.db"
    connection = sqlite3.connect(path)
    connection.execute("create table moz_places (url text)")
    connection.close()
    before = path.read_bytes()
    assert "of another program" in refusal(path)
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["places.db"]


def spoil(path: Path) -> None:
    content = bytearray(path.read_bytes())
    for page in range(2, len(content) // 4096):
        content[page * 4096 : page * 4096 + 1024] = os.urandom(1024)
    path.write_bytes(content)


async def test_a_damaged_file_says_so_whenever_it_is_noticed(store: SqliteStore, path: Path) -> None:
    for number in range(50):
        await store.write("note", note(number))
    store.close()
    spoil(path)
    with pytest.raises(StoreError, match=rf"{path} .*(damaged|lacks)"):
        await entries(SqliteStore(path))


async def test_half_of_a_file_is_damaged(store: SqliteStore, path: Path) -> None:
    for number in range(50):
        await store.write("note", note(number))
    store.close()
    os.truncate(path, os.stat(path).st_size // 2)
    with pytest.raises(StoreError, match=re.escape(str(path))):
        await entries(SqliteStore(path))


def test_a_directory_in_its_place(tmp_path: Path) -> None:
    assert "cannot be opened" in refusal(tmp_path)


def test_a_file_in_the_place_of_its_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "cannot be opened" in refusal(tmp_path / "file" / "signoff.db")


@pytest.fixture
def open_directory() -> Iterator[Path]:
    """A directory that anybody can reach, unlike those of pytest."""
    directory = Path(tempfile.mkdtemp())
    directory.chmod(0o755)
    yield directory
    directory.chmod(0o755)
    shutil.rmtree(directory)


def test_a_directory_one_may_not_write_to(open_directory: Path) -> None:
    open_directory.chmod(0o555)
    said = forked(lambda: refusal(open_directory / "signoff.db"), unprivileged=True)
    assert "cannot be opened (Permission denied)" in said


def test_a_file_one_may_not_write_to(open_directory: Path) -> None:
    path = open_directory / "signoff.db"
    SqliteStore(path).close()
    path.chmod(0o444)
    open_directory.chmod(0o555)

    def child() -> str:
        try:
            store = SqliteStore(path)
            asyncio.run(store.write("note", note(1)))
        except StoreError as error:
            return str(error)
        return "nothing"

    said = forked(child, unprivileged=True)
    assert str(path) in said and "writable for you" in said


async def test_somebody_who_keeps_it_locked(path: Path, store: SqliteStore) -> None:
    impatient = SqliteStore(path, patience=0.01)
    other = connect(path)
    other.execute("begin immediate")
    looked: list[str] = []
    with pytest.raises(StoreError, match=r"another process has kept .* locked for 0.01 s"):
        await impatient.write("note", lambda tx: (looked.append("too early"), note(1)(tx)))
    assert looked == [], "what is decided on has to be what is still so when it is written"
    assert await entries(impatient) == []  # reading goes on
    other.execute("rollback")
    await impatient.write("note", note(2))
    assert len(await entries(impatient)) == 1
    other.close()
    impatient.close()


async def test_who_was_stopped_while_another_wrote_has_not_waited(
    path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is in the way stood still as well, and needs a moment more."""
    other, hour = connect(path), 3_600.0
    other.execute("begin immediate")
    stops: list[float] = []

    def stopped(seconds: float) -> None:
        stops.append(seconds)
        if len(stops) == 3:
            other.execute("rollback")

    clock = SimpleNamespace(sleep=stopped, monotonic=lambda: hour * len(stops))
    monkeypatch.setattr(sqlite_file, "time", clock)
    await store.write("note", note(1))
    assert len(stops) >= 3  # threads of other stores in this process sleep by the same clock
    other.close()


async def test_a_file_that_was_taken_away_is_not_written_to(store: SqliteStore, path: Path) -> None:
    """Whatever is written to a file without a name is gone with the process."""
    await store.write("note", note(1))
    os.rename(path, f"{path}.aside")
    with pytest.raises(StoreError, match="moved or removed while it was in use"):
        await store.write("note", note(2))
    shutil.copy(f"{path}.aside", path)
    with pytest.raises(StoreError, match="moved or removed while it was in use"):
        await store.write("note", note(2))
    os.rename(f"{path}.aside", path)
    await store.write("note", note(3))
    assert [entry.body for entry in await entries(store)] == ['{"n":1}', '{"n":3}']


# --- a full disk ---


@pytest.fixture(params=["a small disk", "a small file"])
def full(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """Where a store is that will have no room; with room again once the file `ballast` is gone."""
    if request.param == "a small file":
        yield tmp_path
        return
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "signoff-test", str(tmp_path)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("a disk can only be mounted by root")
    yield tmp_path
    # Lazily: a test that failed still has files open there, and a disk that stayed would break the runs after this one.
    subprocess.run(["umount", "--lazy", str(tmp_path)], check=True)


def is_mounted(path: Path) -> bool:
    return path.is_mount()


def fill(path: Path, size: int) -> None:
    path.write_bytes(bytes(size))


async def test_a_full_disk_leaves_nothing_half_written(full: Path, tmp_path: Path) -> None:
    store = SqliteStore(full / "signoff.db")
    ballast = full / "ballast"
    is_disk = is_mounted(full)
    await store.write("note", note(1))

    def squeeze(tx: Any) -> None:
        tx.sql._wire._connection.execute(f"pragma max_page_count = {60 if not is_disk else 2**30}")

    await store.write("squeeze", squeeze)
    if is_disk:
        room = os.statvfs(full)
        fill(ballast, room.f_bavail * room.f_frsize - 32 * 4096)

    def big(tx: Transaction) -> None:
        for number in range(10):
            tx.record.append([draft(number, body={"text": "x" * 30_000})])
        tx.settings.put("big", "yes")

    with pytest.raises(StoreError, match=rf"{full}/signoff.db.*nothing was partially written"):
        await store.write("big", big)
    assert len(await entries(store)) == 1
    assert await store.read(lambda tx: tx.settings.get("big")) is None
    if is_disk:
        os.unlink(ballast)
    await store.write("big", big)  # a new connection, so the limit of the last one is gone as well
    found = await entries(store)
    chained(found)
    assert len(found) == 11
    store.close()
    connection = sqlite3.connect(full / "signoff.db")
    assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]
    connection.close()


# --- transactions ---


async def test_sixteen_at_once_take_few_commits(store: SqliteStore) -> None:
    await store.write("note", note(0))
    before = store.commits
    await asyncio.gather(*(store.write("note", note(number)) for number in range(1, 65)))
    assert store.commits - before <= 8
    found = await entries(store)
    chained(found)
    assert len(found) == 65


async def test_one_of_a_batch_that_raises_undoes_only_itself(store: SqliteStore) -> None:
    def bad(tx: Transaction) -> None:
        tx.record.append([draft(99, kind="bad")])
        tx.requests.add(request(99))
        raise WrongUse("oops")

    def twice(tx: Transaction) -> None:
        tx.record.append([draft(98, kind="bad")])
        tx.requests.add(request(1))

    works: list[Any] = [lambda tx: tx.requests.add(request(1)), note(1), bad, note(2), twice, note(3), bad]
    done = await asyncio.gather(*(store.write("work", work) for work in works), return_exceptions=True)
    assert [type(one) for one in done] == [type(None)] * 2 + [WrongUse, type(None), StoreError, type(None), WrongUse]
    found = await entries(store)
    chained(found)
    assert [entry.body for entry in found] == ['{"n":1}', '{"n":2}', '{"n":3}']
    assert await store.read(lambda tx: tx.requests.get("r0099")) is None


async def test_what_changes_nothing_is_no_commit(store: SqliteStore) -> None:
    def fail(tx: Transaction) -> None:
        tx.settings.put("a", "b")
        raise WrongUse("oops")

    assert await store.write("look", lambda tx: tx.record.head()[0]) == 0
    with pytest.raises(WrongUse):
        await store.write("fail", fail)
    assert store.commits == 0


async def test_without_sync_everybody_sees_it_all_the_same(store: SqliteStore, path: Path) -> None:
    await store.write("note", note(1), synced=False)
    assert store.commits == 0
    other = SqliteStore(path)
    assert len(await entries(other)) == 1
    other.close()
    await store.write("note", note(2))
    assert store.commits == 1


@pytest.mark.usefixtures("synced")
async def test_what_follows_a_commit_without_sync_is_on_disk_again_before_it_counts(path: Path) -> None:
    store = SqliteStore(path)

    def synchronous(tx: Any) -> int:
        return tx.sql._wire._connection.execute("pragma synchronous").fetchone()[0]

    assert await store.write("look", synchronous, synced=False) == 1
    assert await store.write("look", synchronous) == 2
    store.close()


async def test_a_claim_is_there_once(store: SqliteStore) -> None:
    """Not even a mistake of the broker's can make a second one."""
    taken = samples.claimed(samples.approved(request(1)))
    await store.write("add", lambda tx: tx.requests.add(taken))

    def again(tx: Any) -> None:
        tx.sql.run("insert into {s}claims (request, holder, claimed_at, claim) values ('r0001', 'p2', 0, '{}')")

    with pytest.raises(StoreError, match="contradicts"):
        await store.write("again", again)
    with pytest.raises(StoreError, match="never taken back"):
        await store.write("undo", lambda tx: tx.requests.put(taken.changed_to(claim=None, version=taken.version + 1)))
    assert await store.read(lambda tx: tx.requests.get("r0001")) == taken


async def test_nobody_looks_while_nobody_watches(store: SqliteStore) -> None:
    others = set(threading.enumerate())

    def looking() -> list[threading.Thread]:
        return [one for one in threading.enumerate() if one.name == "signoff store watch" and one not in others]

    stops = [store.watch(lambda: None), store.watch(lambda: None)]
    [thread] = looking()
    for stop in stops:
        stop()
    await asyncio.to_thread(thread.join)
    assert looking() == []


# --- other processes ---

WRITER = """
import asyncio, sys
from tests.contracts.samples import draft
from signoff.store.sqlite import SqliteStore

def count(tx):
    number = int(tx.settings.get("count") or 0) + 1
    tx.settings.put("count", str(number))
    tx.record.append([draft(number, kind=sys.argv[2])])

async def main():
    store = SqliteStore(sys.argv[1])
    for _ in range(int(sys.argv[3])):
        await store.write("count", count)
    store.close()

asyncio.run(main())
"""


async def test_processes_write_one_after_the_other(path: Path) -> None:
    """They also make the file together: whoever is first, there is one."""
    children = [started(WRITER, path, f"child {number}", 40) for number in range(4)]
    for child in children:
        await asyncio.to_thread(ended, child)
    store = SqliteStore(path)
    found = await entries(store)
    chained(found)
    assert len(found) == 160
    assert {entry.kind for entry in found} == {f"child {number}" for number in range(4)}
    assert await store.read(lambda tx: tx.settings.get("count")) == "160"
    store.close()


LEAVER = """
import sys
from tests.contracts.samples import draft
from signoff.store.sqlite import SqliteStore
store = SqliteStore(sys.argv[1])
for number in range(100):
    store.later("note", lambda tx, number=number: tx.record.append([draft(number)]))
"""


async def test_a_program_that_ends_writes_what_it_left_for_later(path: Path) -> None:
    await asyncio.to_thread(ended, started(LEAVER, path))
    store = SqliteStore(path)
    assert [entry.body for entry in await entries(store)] == [f'{{"n":{number}}}' for number in range(100)]
    store.close()


# --- how it is asked ---


def plan(store: SqliteStore, name: str) -> str:
    connection = store._reader()
    rows = list[Any]()
    for sql in sql_of(name, SQLITE):
        rows += connection.execute(f"explain query plan {sql}", ("",) * sql.count("?")).fetchall()
    store._readers.append(connection)
    return "; ".join(row[3] for row in rows)


INDICES = [
    ("request", "SEARCH r USING INDEX sqlite_autoindex_requests_1 (id=?)"),
    ("about", "SEARCH r USING INDEX requests_call (call_key=?)"),
    ("open_requests", "SCAN r USING INDEX requests_waiting"),
    ("inbox", "SCAN requests USING INDEX requests_waiting"),
    ("inbox_after", "SEARCH requests USING INDEX requests_waiting (opened_at>?)"),
    ("requests_of_conversation", "SEARCH r USING INDEX requests_conversation (conversation=?)"),
    ("requests_of_run", "SEARCH r USING INDEX requests_run (run=?)"),
    ("asked_at_in_run", "SEARCH requests USING INDEX requests_run (run=? AND opened_at=?)"),
    ("asked_at_in_conversation", "USING INDEX requests_conversation (conversation=? AND opened_at=?)"),
    ("requests_like", "SEARCH requests USING COVERING INDEX sqlite_autoindex_requests_1 (id>? AND id<?)"),
    ("runs_like", "SEARCH runs USING COVERING INDEX sqlite_autoindex_runs_1 (id>? AND id<?)"),
    ("due", "SEARCH requests USING INDEX requests_deadline (deadline>? AND deadline<?)"),
    ("due", "SEARCH requests USING INDEX requests_remind (remind_at>? AND remind_at<?)"),
    ("claimed", "SCAN r USING INDEX requests_claimed"),
    ("waiting_of_run", "SEARCH requests USING INDEX requests_run (run=?)"),
    ("answered_of_run", "SEARCH r USING INDEX requests_run (run=?)"),
    ("listed_waiting", "SEARCH requests USING INDEX requests_waiting (opened_at>?)"),
    ("listed_settled", "SEARCH requests USING INTEGER PRIMARY KEY (rowid<?)"),
    ("listed_all_of_run", "SEARCH requests USING INDEX requests_run (run=?)"),
    ("drop_results", "SEARCH requests USING INDEX requests_run (run=?)"),
    ("grants_about", "SEARCH grants USING INDEX grants_about (tool=? AND memory_key=?)"),
    ("runs_going", "SEARCH runs USING INDEX runs_going (nr<?)"),
    (
        "delivery",
        "SEARCH deliveries USING INDEX sqlite_autoindex_deliveries_1 (channel=? AND kind=? AND about=?",
    ),
    ("live_deliveries", "SCAN deliveries USING INDEX deliveries_live"),
    ("deliveries_of_trail", "SEARCH deliveries USING INDEX deliveries_trail (trail=?)"),
    ("live_deliveries_of_trail", "SEARCH deliveries USING INDEX deliveries_live_of_trail (trail=?)"),
    ("last_deliveries", "SEARCH deliveries USING INDEX deliveries_trail (trail=?)"),
    ("deliveries_of_request", "SEARCH deliveries USING INDEX deliveries_about (about=?)"),
    ("changed_trails", "SEARCH deliveries USING COVERING INDEX deliveries_change"),
    ("changed_trails", "SEARCH deliveries USING INDEX deliveries_change (change>?)"),
    ("lease", "SEARCH leases USING INDEX sqlite_autoindex_leases_1 (channel=?)"),
    ("conversation", "SEARCH messages USING COVERING INDEX sqlite_autoindex_messages_1 (conversation=?)"),
    ("segments", "SEARCH segments USING INDEX sqlite_autoindex_segments_1 (id=?)"),
    ("entries", "SEARCH events USING INTEGER PRIMARY KEY (rowid>?)"),
    ("entries_of_request", "SEARCH events USING INDEX events_request (request=? AND seq>?)"),
    ("entries_of_run", "SEARCH events USING INDEX events_run (run=? AND seq>?)"),
    ("touched", "SEARCH events USING INTEGER PRIMARY KEY (rowid>?)"),
]


def test_nothing_is_looked_for_one_by_one(store: SqliteStore) -> None:
    """However many are settled: what is asked for often is found by an index."""
    plans = {query: plan(store, query) for query in ASKED}
    assert [(query, index, plans[query]) for query, index in INDICES if index not in plans[query]] == []
    one_by_one = r"SCAN (requests|events|grants|runs|segments|deliveries)(?! USING INDEX)"
    assert {query: found for query, found in plans.items() if re.search(one_by_one, found)} == {}


def test_the_first_page_needs_no_sorting(store: SqliteStore) -> None:
    assert "B-TREE" not in plan(store, "inbox")
    assert "B-TREE" not in plan(store, "inbox_after")
    assert "B-TREE" not in plan(store, "listed_waiting")


def test_what_was_asked_last_needs_no_sorting(store: SqliteStore) -> None:
    """From the end on, by number: what waits is passed over, and it is few among many."""
    found = plan(store, "recent")
    assert found.startswith("SCAN r;")
    assert "B-TREE" not in found


@pytest.mark.parametrize("query", ["live_deliveries", "deliveries_of_trail", "deliveries_of_request"])
def test_deliveries_need_no_sorting(store: SqliteStore, query: str) -> None:
    assert "B-TREE" not in plan(store, query)


def test_a_store_that_somebody_else_makes_meanwhile_is_ours(tmp_path: Path) -> None:
    """Between two looks at a file that was empty, another process makes the store in it."""
    path = tmp_path / "signoff.db"

    class Meanwhile(sqlite3.Connection):
        def execute(self, *arguments: Any) -> sqlite3.Cursor:
            found = super().execute(*arguments)
            if path.stat().st_size == 0:
                rows = found.fetchall()
                SqliteStore(path).close()
                return super().execute("values " + ", ".join(f"({', '.join(map(str, row))})" for row in rows))
            return found

    path.touch()
    with closing(sqlite3.connect(path, factory=Meanwhile)) as connection:
        assert not (there := sqlite_file.versions_of(connection, path)) or not schema.problem_of(there, "")


@pytest.mark.parametrize("closers", [1, 2])
def test_a_store_is_closed_once_nobody_looks_for_changes_any_more(closers: int) -> None:
    """A connection of SQLite that one thread closes while another uses it ends the process."""
    looks, over = threading.Event(), list[bool]()

    def look(stop: threading.Event, tick: Callable[[], None]) -> None:
        looks.set()
        stop.wait()
        for _ in range(5_000):
            os.stat(os.curdir)  # it is in the middle of a look, and others run meanwhile
        over.append(True)

    watchers = Watchers(look)
    end = watchers.add(lambda: None)
    looks.wait()
    if closers == 1:
        end()
    together, seen = threading.Barrier(closers), list[bool]()

    def close() -> None:
        together.wait()
        watchers.close()
        seen.append(bool(over))

    threads = [threading.Thread(target=close) for _ in range(closers)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert seen == [True] * closers


def test_a_store_leaves_what_another_thread_uses_to_that_thread(path: Path) -> None:
    store = SqliteStore(path)
    looked = _Looked()
    store._has_changed(looked)  # as a thread does that still looks
    assert looked.connection is not None
    store.close()
    looked.connection.execute("select 1")
    store._stop_looking(looked)
    assert looked.connection is None and not store._readers
