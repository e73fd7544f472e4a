"""An SQLite file as signoff keeps it: made for its owner alone, recognised, brought up to date, and its errors told."""

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
from signoff.store import schema
from signoff.store.data_migration import carry, refuse_while_used
from signoff.store.queries import Queries
from signoff.store.rows import Row
from signoff.store.schema import Migration
from signoff.store.sql import Sql

Upgrade = Literal["auto", "refuse"]

APPLICATION = 0x5369676E
"""`Sign`: stands in the file's header, so that the file of another program is never taken for ours."""
PATIENCE = 30.0
"""Seconds to wait for other processes that write."""


QUERIES = Queries("sqlite")


class ReadingWire:
    """See `signoff.store.sql.Wire`."""

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
    """A connection to a file that is there. A transaction begins only when told to."""
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?mode=rw",
        uri=True,
        timeout=patience,
        isolation_level=None,
        check_same_thread=False,  # one thread at a time uses it, not always the same
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
    """Make the file if it is not there; see that it is ours and of the version this program knows.

    Returns a connection for reading: whoever only looks needs no other.
    """
    known = schema.latest("sqlite")
    with told(path):
        _create(path)
        connection = connect(path, patience=patience)
        try:
            version = version_of(connection, path)
            schema.refuse_newer(version, known, str(path))
            if version and upgrade == "refuse":
                schema.refuse_older(version, known, str(path))
            if version < known:
                bring_up_to_date(connection, path)
            connection.execute("pragma query_only = on")
        except BaseException:
            connection.close()
            raise
        return connection


def upgrade(path: Path) -> list[str]:
    """Bring a file up to date, or make it. Returns what was done."""
    with told(path):
        _create(path)
        with closing(connect(path)) as connection:
            version, known = version_of(connection, path), schema.latest("sqlite")
            schema.refuse_newer(version, known, str(path))
            return bring_up_to_date(connection, path) if version < known else []


def version_of(connection: sqlite3.Connection, path: Path) -> int:
    """The version of its schema; 0 for a file with nothing in it. Raises where it is not ours."""
    [tables] = connection.execute("select count(*) from sqlite_master").fetchone()
    # Asked for after the tables: somebody else may be making the store, and writes both at once.
    [application] = connection.execute("pragma application_id").fetchone()
    if application == APPLICATION:
        [version] = connection.execute(schema.VERSION.replace("{s}", "")).fetchone()
        return version
    if application or tables:
        raise StoreError(
            f"{path} is an SQLite database of another program, and signoff does not touch it; "
            "name another file, as in `store: sqlite:.signoff/signoff.db`"
        )
    return 0


def bring_up_to_date(connection: sqlite3.Connection, path: Path) -> list[str]:
    """Apply what is missing, all of it or nothing, after a backup. Returns what was done."""
    _to_wal(connection)
    done: list[str] = []
    backup: Path | None = None
    begin(connection, PATIENCE)
    try:
        version = version_of(connection, path)  # again: another process may have been faster
        if 0 < version < schema.latest("sqlite"):
            refuse_while_used(Sql(WritingWire(connection), QUERIES), str(path), datetime.now(UTC))
            backup = beside(path, version)
            copy(path, backup)
            done.append(f"backup: {backup}")
        if version < schema.latest("sqlite"):
            connection.execute(schema.TABLE.replace("{s}", ""))
            connection.execute(f"pragma application_id = {APPLICATION}")
        for step in schema.missing("sqlite", version):
            _apply(connection, step)
            done.append(step.name)
        carry(version, WritingWire(connection), QUERIES)
        connection.execute("commit")
    except BaseException:
        rollback(connection)
        if backup is not None:  # of what is there still, unchanged
            backup.unlink(missing_ok=True)
        raise
    return done


def _apply(connection: sqlite3.Connection, step: Migration) -> None:
    for statement in step.statements:
        connection.execute(statement)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    connection.execute(schema.APPLIED.replace("{s}", ""), (step.number, step.name, now))


def _to_wal(connection: sqlite3.Connection) -> None:
    """From here on readers and the writer do not wait for each other. The busy timeout does not cover this step."""
    _in_turn(connection, "pragma journal_mode = wal", PATIENCE)


def begin(connection: sqlite3.Connection, patience: float) -> None:
    """Begin to write, when it is our turn. SQLite's own waiting favours newcomers; this does not."""
    _in_turn(connection, "begin immediate", patience)


def _in_turn(connection: sqlite3.Connection, statement: str, patience: float) -> None:
    """Execute it as soon as nobody else is in the way; raises where that takes longer than `patience`.

    What counts is how long this process has tried. One that was stopped for minutes, alone or with its whole machine,
    has not waited meanwhile, and neither did whoever is in the way get on.
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
    """Undo; some errors have undone it already."""
    with suppress(sqlite3.Error):
        if connection.in_transaction:
            connection.execute("rollback")


def is_busy(error: sqlite3.Error) -> bool:
    return _name(error).startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def beside(path: Path, version: int) -> Path:
    """Where the backup before an upgrade goes: next to the file."""
    now = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%fZ")
    return path.with_name(f"{path.name}.bak-{version:04}-{now}")


def copy(path: Path, to: Path) -> None:
    """A whole and consistent copy, also while others write. Never over a file that is there."""
    try:
        os.close(os.open(to, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError as error:
        raise StoreError(f"{to} already exists, and a backup overwrites nothing; name another file") from error
    except OSError as error:
        raise StoreError(f"{to} cannot be written ({error.strerror}); name a file in a directory of yours") from error
    try:
        with closing(connect(path, reads_only=True)) as source, closing(sqlite3.connect(to)) as target:
            source.backup(target)
            target.execute("pragma journal_mode = delete")  # one file, nothing beside it
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
    """An empty file that only its owner can read. SQLite gives the files beside it the same mode."""
    try:
        for directory in reversed([one for one in path.parents if not one.exists()]):
            directory.mkdir(mode=0o700, exist_ok=True)
        _refuse_beside_log(path)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        if not path.is_file():
            raise


def _refuse_beside_log(path: Path) -> None:
    """Raise where a file was moved away from its log. SQLite would take a new one's for its own, and empty it."""
    log = path.with_name(f"{path.name}-wal")
    with suppress(OSError):
        if log.stat().st_size and not path.exists():
            raise StoreUnavailable(
                f"{path} is not there, but its log {log.name} is, with what was written last: put the file back; "
                "or move the log away too, to start over"
            )


def store_error(error: sqlite3.Error, path: Path, patience: float = PATIENCE) -> StoreError:
    """What went wrong, where, and what to do."""
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
