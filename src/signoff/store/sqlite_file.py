"""Open, create and back up the SQLite file of a store, and explain its errors."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote
from weakref import WeakSet

from signoff.errors import SchemaError, StoreError, StoreUnavailable
from signoff.store import schema
from signoff.store.dialect import SQLITE
from signoff.store.durable_store import IN_FORK
from signoff.store.tables import Row

APPLICATION = 0x5369676E
"""SQLite's `application_id` in the file's header, `Sign` in ASCII. It tells our files from those of other programs."""
PATIENCE = 30.0
"""Seconds to wait for the lock while other processes write."""
SYNCED = "full"
"""What SQLite calls it that a commit survives a loss of power. Kills of processes are survived without."""


class ReadingWire:
    """Sends read queries to SQLite. See `signoff.store.tables.Wire`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def rows(self, sql: str, values: Sequence[Any] = ()) -> Sequence[Row]:
        return self._connection.execute(sql, values).fetchall()

    def run(self, sql: str, values: Sequence[Any] = ()) -> None:
        raise StoreError("a read transaction made a change; use `write` for changes")


class WritingWire(ReadingWire):
    def run(self, sql: str, values: Sequence[Any] = ()) -> None:
        self._connection.execute(sql, values)


def connect(path: Path, *, reads_only: bool = False, patience: float = PATIENCE) -> sqlite3.Connection:
    """Connect to an existing file. No transaction begins by itself (`isolation_level=None`)."""
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?mode=rw",
        uri=True,
        timeout=patience,
        isolation_level=None,
        check_same_thread=False,  # used by one thread at a time, but not always the same one
        factory=Connection,
    )
    try:
        connection.execute("pragma foreign_keys = on")
        sync(connection, every_commit=True)
        if reads_only:
            connection.execute("pragma query_only = on")
    except BaseException:
        connection.close()
        raise
    return connection


def sync(connection: sqlite3.Connection, *, every_commit: bool) -> None:
    """Have each commit from now on be on the disk before it counts, or only what is moved out of the journal."""
    connection.execute(f"pragma synchronous = {SYNCED if every_commit else 'normal'}")


def prepare(path: Path, patience: float = PATIENCE) -> sqlite3.Connection:
    """Create the file if it does not exist; check that it is ours and of the schema version this program knows.

    Returns a read-only connection: a program that only reads needs no other.
    """
    with told(path):
        _create(path)
        connection = connect(path, patience=patience)
        try:
            if not (versions := versions_of(connection, path)):
                versions = _create_tables(connection, path)
            schema.refuse_other(versions, str(path))
            connection.execute("pragma query_only = on")
        except BaseException:
            connection.close()
            raise
        return connection


def versions_of(connection: sqlite3.Connection, path: Path) -> schema.Versions:
    """Return the schema versions; none for an empty file. Raises `StoreError` for the file of another program."""
    [tables] = connection.execute("select count(*) from sqlite_master").fetchone()
    # Read after the tables: another process may be creating the store, and it commits both at once.
    [application] = connection.execute("pragma application_id").fetchone()
    if application == APPLICATION:
        return connection.execute(SQLITE[schema.VERSIONS]).fetchall()
    if application or tables:
        raise StoreError(
            f"{path} is an SQLite database of another program, and signoff does not touch it; "
            "name another file, as in `store: sqlite:.signoff/signoff.db`"
        )
    return ()


def _create_tables(connection: sqlite3.Connection, path: Path) -> schema.Versions:
    """Create the tables in one transaction, unless another process has. Returns the versions that there are now."""
    _to_wal(connection)
    begin(connection, PATIENCE)
    try:
        if not versions_of(connection, path):  # read again under the lock
            connection.execute(f"pragma application_id = {APPLICATION}")
            for statement in schema.statements(SQLITE):
                connection.execute(statement)
            now = datetime.now(UTC).isoformat(timespec="seconds")
            connection.execute(SQLITE[schema.APPLIED], (schema.VERSION, schema.NAME, now))
        connection.execute("commit")
    except BaseException:
        rollback(connection)
        raise
    return versions_of(connection, path)


def _to_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL mode, so that readers and the writer do not block each other.

    It has a wait loop of its own, because the busy timeout does not cover this step.
    """
    _in_turn(connection, "pragma journal_mode = wal", PATIENCE)


def begin(connection: sqlite3.Connection, patience: float) -> None:
    """Begin a write transaction when the lock is free. SQLite's own busy handler favours newcomers; this does not."""
    _in_turn(connection, "begin immediate", patience)


def _in_turn(connection: sqlite3.Connection, statement: str, patience: float) -> None:
    """Execute a statement as soon as the lock is free. Raises the busy error after `patience` seconds.

    Only the time this process spent trying counts. A process that was stopped for minutes, alone or with its whole
    machine, did not wait meanwhile, and the holder of the lock may not have run either.
    """
    while True:
        tried = time.monotonic()
        try:
            connection.execute(statement).fetchone()
            return
        except sqlite3.OperationalError as error:
            if not is_busy(error) or patience < 0:
                raise
            import random

            pause = random.uniform(0.0005, 0.002)
            patience -= time.monotonic() - tried + pause
        time.sleep(pause)


def rollback(connection: sqlite3.Connection) -> None:
    """Roll back the transaction, if there is still one: some errors have already rolled it back."""
    with suppress(sqlite3.Error):
        if connection.in_transaction:
            connection.execute("rollback")


def is_busy(error: sqlite3.Error) -> bool:
    return _name(error).startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def copy(path: Path, to: Path) -> None:
    """Make a complete and consistent copy, also while others write. Never overwrites a file."""
    try:
        os.close(os.open(to, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError as error:
        raise StoreError(f"{to} already exists, and a backup overwrites nothing; name another file") from error
    except OSError as error:
        raise StoreError(f"{to} cannot be written ({error.strerror}); name a file in a directory of yours") from error
    try:
        with closing(connect(path, reads_only=True)) as source, closing(sqlite3.connect(to)) as target:
            source.backup(target)
            target.execute("pragma journal_mode = delete")  # a single file, without `-wal` and `-shm`
    except BaseException:
        to.unlink(missing_ok=True)
        raise


@contextmanager
def closing(connection: sqlite3.Connection) -> Generator[sqlite3.Connection]:
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def told(path: Path) -> Generator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise store_error(error, path) from error
    except OSError as error:
        raise StoreUnavailable(
            f"the store {path} cannot be opened ({error.strerror}); "
            "its directory has to be there and writable for you, or name another file in `store:`"
        ) from error


def _create(path: Path) -> None:
    """Create an empty file with mode 0600. SQLite gives its `-wal` and `-shm` files the same mode."""
    refuse_in_fork()
    try:
        for directory in reversed([one for one in path.parents if not one.exists()]):
            directory.mkdir(mode=0o700, exist_ok=True)
        _refuse_beside_log(path)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        if not path.is_file():
            raise


def _refuse_beside_log(path: Path) -> None:
    """Raise if the file is gone but its write-ahead log is there.

    SQLite would take the log for that of a new file and empty it.
    """
    log = path.with_name(f"{path.name}-wal")
    with suppress(OSError):
        if log.stat().st_size and not path.exists():
            raise StoreUnavailable(
                f"{path} is not there, but its log {log.name} is, with what was written last: put the file back; "
                "or move the log away too, to start over"
            )


def store_error(error: sqlite3.Error, path: Path, patience: float = PATIENCE) -> StoreError:
    """Convert an SQLite error into a `StoreError` that says what went wrong, where, and what to do."""
    name = _name(error)
    if name.startswith("SQLITE_NOTADB"):
        return StoreUnavailable(
            f"{path} is not a database (or its beginning is damaged); restore a backup, or move it away to start over"
        )
    if name.startswith("SQLITE_CORRUPT"):
        return StoreUnavailable(
            f"{path} is damaged ({error}); `signoff db check` says where; "
            "restore a backup, or move it away to start over"
        )
    if name.startswith(("SQLITE_FULL", "SQLITE_IOERR_SHMSIZE")):
        return StoreUnavailable(
            f"the disk that holds {path} is full; nothing was partially written: free some space and try again"
        )
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return StoreUnavailable(
            f"another process has kept {path} locked for {patience:g} s; "
            "look for one that hangs (fuser, lsof), and try again"
        )
    if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM", "SQLITE_AUTH")):
        return StoreUnavailable(
            f"the store {path} cannot be written ({error}); the file and its directory have to be writable for you"
        )
    if name.startswith("SQLITE_IOERR"):
        return StoreUnavailable(
            f"the disk that holds {path} failed ({error}, {name}); "
            "nothing was half-written: see that it has room and works, and try again"
        )
    if isinstance(error, sqlite3.IntegrityError):
        return StoreError(f"{path} refused a change that contradicts what is in it: {error}")
    if "no such table" in str(error) or "no such column" in str(error):
        return SchemaError(
            f"{path} lacks a part of its schema ({error}): it was changed from outside; restore a backup"
        )
    return StoreError(f"{path}: {error} ({name or type(error).__name__}); `signoff db check` may say more")


def _name(error: sqlite3.Error) -> str:
    return getattr(error, "sqlite_errorname", "") or ""


# --- after a fork ---

# SQLite does not survive a fork with an open file. The forked process inherits what SQLite remembers of its parent's
# locks, but not the locks: what it writes would be lost, or overwrite what its parent writes, and to close a connection
# is to write, too. So what it inherited stays open, and unused, until the process ends, and it opens no others.

_open: WeakSet[Connection] = WeakSet()
_pid = os.getpid()
_inherits = False
"""Whether a connection was open in this process's parent when it was forked."""


class Connection(sqlite3.Connection):
    """A connection that a forked process neither uses nor closes."""

    def __init__(self, *args: Any, **options: Any) -> None:
        refuse_in_fork()
        _open.add(self)  # first: another thread may fork while it opens
        super().__init__(*args, **options)

    def close(self) -> None:
        if not inherits():
            super().close()
            _open.discard(self)


def refuse_in_fork() -> None:
    """Raise if this process was forked while its parent had a connection open."""
    if inherits():
        raise StoreUnavailable(IN_FORK)


def inherits() -> bool:
    """Whether this process was forked while its parent had a connection open."""
    if _pid != os.getpid():  # by a program that does not tell Python of it, as uWSGI does
        keep_open()
    return _inherits


def keep_open() -> None:
    """In a forked process: keep the connections of its parent open, even when Python ends and drops all objects."""
    global _pid, _inherits
    _pid = os.getpid()
    if connections := list(_open):
        import ctypes

        _inherits = True
        for connection in connections:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=keep_open)
