"""Open, create, migrate and back up the SQLite file of a store, and explain its errors."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from signoff.errors import SchemaError, StoreError, StoreUnavailable
from signoff.store import migration_list
from signoff.store.migration_list import Migration
from signoff.store.queries import Queries
from signoff.store.rows import Row
from signoff.store.sql import Sql
from signoff.store.sqlite_fork import is_fork_waiting, refuse_after_unsafe_fork, uses_sqlite

Upgrade = Literal["auto", "refuse"]

APPLICATION = 0x5369676E
"""SQLite's `application_id` in the file's header, `Sign` in ASCII. It tells our files from those of other programs."""
PATIENCE = 30.0
"""Seconds to wait for the lock while other processes write."""


QUERIES = Queries("sqlite")


class ReadingWire:
    """Sends read queries to SQLite. See `signoff.store.sql.Wire`."""

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
    refuse_after_unsafe_fork()
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?mode=rw",
        uri=True,
        timeout=patience,
        isolation_level=None,
        check_same_thread=False,  # used by one thread at a time, but not always the same one
    )
    try:
        connection.execute("pragma foreign_keys = on")
        connection.execute("pragma synchronous = full")
        if reads_only:
            connection.execute("pragma query_only = on")
    except BaseException:
        connection.close()
        raise
    return connection


def prepare(path: Path, upgrade: Upgrade, patience: float = PATIENCE) -> sqlite3.Connection:
    """Create the file if it does not exist; check that it is ours and of the schema version this program knows.

    Returns a read-only connection: a program that only reads needs no other.
    """
    known = migration_list.latest("sqlite")
    with told(path):
        _create(path)
        connection = connect(path, patience=patience)
        try:
            version = version_of(connection, path)
            migration_list.refuse_newer(version, known, str(path))
            if version and upgrade == "refuse":
                migration_list.refuse_older(version, known, str(path))
            if version < known:
                bring_up_to_date(connection, path)
            connection.execute("pragma query_only = on")
        except BaseException:
            connection.close()
            raise
        return connection


@uses_sqlite
def upgrade(path: Path) -> list[str]:
    """Migrate a file to the newest schema, or create it. Returns what was done."""
    with told(path):
        _create(path)
        with closing(connect(path)) as connection:
            version, known = version_of(connection, path), migration_list.latest("sqlite")
            migration_list.refuse_newer(version, known, str(path))
            return bring_up_to_date(connection, path) if version < known else []


def version_of(connection: sqlite3.Connection, path: Path) -> int:
    """Return the schema version; 0 for an empty file. Raises `StoreError` if the file belongs to another program."""
    [tables] = connection.execute("select count(*) from sqlite_master").fetchone()
    # Read after the tables: another process may be creating the store, and it commits both at once.
    [application] = connection.execute("pragma application_id").fetchone()
    if application == APPLICATION:
        [version] = connection.execute(migration_list.VERSION.replace("{s}", "")).fetchone()
        return version
    if application or tables:
        raise StoreError(
            f"{path} is an SQLite database of another program, and signoff does not touch it; "
            "name another file, as in `store: sqlite:.signoff/signoff.db`"
        )
    return 0


def bring_up_to_date(connection: sqlite3.Connection, path: Path) -> list[str]:
    """Apply all missing migrations in one transaction, after a backup. Returns what was done."""
    _to_wal(connection)
    done: list[str] = []
    backup: Path | None = None
    begin(connection, PATIENCE)
    try:
        version = version_of(connection, path)  # read again under the lock: another process may have been faster
        is_older = 0 < version < migration_list.latest("sqlite")
        if is_older:
            from signoff.store.data_migration import refuse_while_used

            refuse_while_used(Sql(WritingWire(connection), QUERIES), str(path), datetime.now(UTC))
            backup = beside(path, version)
            copy(path, backup)
            done.append(f"backup: {backup}")
        if version < migration_list.latest("sqlite"):
            connection.execute(migration_list.TABLE.replace("{s}", ""))
            connection.execute(f"pragma application_id = {APPLICATION}")
        for step in migration_list.missing("sqlite", version):
            _apply(connection, step)
            done.append(step.name)
        if is_older:
            from signoff.store.data_migration import carry

            carry(version, WritingWire(connection), QUERIES)
        connection.execute("commit")
    except BaseException:
        rollback(connection)
        if backup is not None:  # not needed: the file is unchanged
            backup.unlink(missing_ok=True)
        raise
    return done


def _apply(connection: sqlite3.Connection, step: Migration) -> None:
    for statement in step.statements:
        connection.execute(statement)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    connection.execute(migration_list.APPLIED.replace("{s}", ""), (step.number, step.name, now))


def _to_wal(connection: sqlite3.Connection) -> None:
    """Switch to WAL mode, so that readers and the writer do not block each other.

    It has a wait loop of its own, because the busy timeout does not cover this step.
    """
    _in_turn(connection, "pragma journal_mode = wal", PATIENCE)


def begin(connection: sqlite3.Connection, patience: float, *, gives_way: bool = False) -> None:
    """Begin a write transaction when the lock is free. SQLite's own busy handler favours newcomers; this does not.

    With `gives_way`, raises `GaveWay` if a fork waits for this thread, which waits for the lock.
    """
    _in_turn(connection, "begin immediate", patience, gives_way=gives_way)


class GaveWay(Exception):
    """This thread has to leave SQLite for a moment, and may then begin again, with this patience."""

    def __init__(self, patience: float) -> None:
        self.patience = patience


def _in_turn(connection: sqlite3.Connection, statement: str, patience: float, *, gives_way: bool = False) -> None:
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
        if gives_way and is_fork_waiting():
            raise GaveWay(patience)
        time.sleep(pause)


def rollback(connection: sqlite3.Connection) -> None:
    """Roll back the transaction, if there is still one: some errors have already rolled it back."""
    with suppress(sqlite3.Error):
        if connection.in_transaction:
            connection.execute("rollback")


def is_busy(error: sqlite3.Error) -> bool:
    return _name(error).startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def beside(path: Path, version: int) -> Path:
    """Return the path of the backup before an upgrade: next to the file."""
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    return path.with_name(f"{path.name}.bak-{version:04}-{now}")


@uses_sqlite
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
            f"{path} is damaged ({error}); `signoff db check` says where; restore a backup "
            f"(files named {path.name}.bak-… are some), or move it away to start over"
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
            f"{path} lacks a part of its schema ({error}); "
            "a newer signoff may have upgraded it: start this program with that version, or restore a backup"
        )
    return StoreError(f"{path}: {error} ({name or type(error).__name__}); `signoff db check` may say more")


def _name(error: sqlite3.Error) -> str:
    return getattr(error, "sqlite_errorname", "") or ""
