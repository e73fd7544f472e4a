"""Run one SQL statement on SQLite or PostgreSQL, over connections that enforce read-only access themselves.

The parser has already classified the SQL, but these connections do not rely on it. If it was wrong, a read still writes
no row and no file, and runs no second statement.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote

from signoff.errors import MissingExtra, WrongUse
from signoff.policy.sql.names import listed, pure
from signoff.store.store_urls import masked, sqlite_path


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows that a statement returned, up to the limit, and whether there were more."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    more: bool = False
    changed: int = -1
    """Rows that were inserted, updated or deleted; -1 if the database does not say."""


class DatabaseError(Exception):
    """An error of the database, with its own message."""


class RunningStatement(Protocol):
    """One statement on a connection of its own. `stop` is thread-safe and may be called at any time."""

    def read(self, sql: str, most: int) -> Rows: ...

    def write(self, sql: str, most: int) -> Rows: ...

    def stop(self) -> None: ...


def database(url: str) -> tuple[str, Callable[[float], RunningStatement]]:
    """Return the SQL dialect of a URL, and a function that starts a job there, given its timeout in seconds."""
    kind, _, rest = url.partition(":")
    match kind.lower():
        case "sqlite":
            path = sqlite_path(url)
            return "sqlite", lambda timeout: SqliteJob(path, timeout)
        case "postgresql" | "postgres" if rest.startswith("//"):
            try:
                import psycopg as psycopg
            except ImportError as error:
                raise MissingExtra("SQL tools for PostgreSQL", "postgres") from error
            return "postgres", lambda timeout: PostgresJob(url, timeout)
        case _:
            raise WrongUse(f"{masked(url)!r} names no database; write sqlite:PATH or postgresql://user@host/database")


# --- SQLite ---

_LOOKING = frozenset({sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_RECURSIVE})
_CHANGING_ROWS = frozenset({sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE})
_NEVER = frozenset({
    sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH, sqlite3.SQLITE_TRANSACTION, sqlite3.SQLITE_SAVEPOINT,
    sqlite3.SQLITE_CREATE_VTABLE, sqlite3.SQLITE_DROP_VTABLE,
})  # fmt: skip
_OPERATORS = frozenset({"like", "glob", "regexp", "match", "->", "->>"})
LONGEST_VALUE = 50_000_000


class SqliteJob:
    """One statement on an SQLite file."""

    def __init__(self, path: str, timeout: float) -> None:
        self._path = path
        self._timeout = timeout
        self._connection: sqlite3.Connection | None = None
        self._stopped = False

    def read(self, sql: str, most: int) -> Rows:
        """Run over a connection that cannot write: read-only file, read-only session, and an authorizer callback."""
        explains = re.match(r"\s*explain\b", sql, re.IGNORECASE) is not None  # the statement is prepared, not run
        with self._open("ro") as db:
            db.execute("PRAGMA query_only = 1")
            db.execute("PRAGMA trusted_schema = 0")
            db.set_authorizer(_may_explain if explains else _may_look)
            return _fetched(db.execute(sql), most)

    def write(self, sql: str, most: int) -> Rows:
        """Run in one transaction, which the statement can neither end nor leave."""
        with self._open("rw") as db:
            db.execute("PRAGMA trusted_schema = 0")
            db.execute("BEGIN IMMEDIATE")
            db.set_authorizer(_may_change)
            cursor = db.execute(sql)
            rows = _fetched(cursor, most)
            cursor.fetchall()  # RETURNING is complete only after all rows are read
            db.set_authorizer(None)
            db.execute("COMMIT")
            return Rows(rows.columns, rows.rows, rows.more, cursor.rowcount)

    def stop(self) -> None:
        self._stopped = True
        with suppress(sqlite3.Error):
            if self._connection is not None:
                self._connection.interrupt()

    @contextmanager
    def _open(self, mode: str) -> Generator[sqlite3.Connection]:
        where = f"file:{quote(self._path)}?mode={mode}"
        try:
            db = sqlite3.connect(where, uri=True, timeout=self._timeout, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise DatabaseError(str(error)) from error
        self._connection = db
        try:
            db.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
            # SQLite loses an interrupt between two statements; the progress handler notices it anyway.
            db.set_progress_handler(lambda: self._stopped, 10_000)
            yield db
        except (sqlite3.Error, sqlite3.Warning, OverflowError, ValueError, MemoryError) as error:
            raise DatabaseError(str(error) or type(error).__name__) from error
        finally:
            self._connection = None
            db.close()


def _may_explain(action: int, first: str | None, second: str | None, *_: object) -> int:
    return sqlite3.SQLITE_OK if action in _CHANGING_ROWS else _may_look(action, first, second)


def _may_look(action: int, first: str | None, second: str | None, *_: object) -> int:
    if action in _LOOKING:
        return sqlite3.SQLITE_OK
    if action == sqlite3.SQLITE_FUNCTION:
        known = pure("sqlite", False) | _OPERATORS
        return sqlite3.SQLITE_OK if (second or "").lower() in known else sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_PRAGMA:
        names = listed("pragmas", "alone" if second is None else "about")
        return sqlite3.SQLITE_OK if (first or "").lower() in names else sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_DENY


def _may_change(action: int, first: str | None, second: str | None, *_: object) -> int:
    if action in _NEVER:
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in ("load_extension", "fts3_tokenizer"):
        return sqlite3.SQLITE_DENY
    if action == sqlite3.SQLITE_PRAGMA and (first or "").lower() == "writable_schema":
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK


def _fetched(cursor: sqlite3.Cursor, most: int) -> Rows:
    rows = cursor.fetchmany(most + 1)
    columns = [str(column[0]) for column in cursor.description or ()]
    return Rows(columns, rows[:most], len(rows) > most)


# --- PostgreSQL ---

_CURSOR = "signoff_query"
_DIRECT = re.compile(r"\s*(?:explain|show)\b", re.IGNORECASE)
_READERS: dict[int, Callable[[str], Any]] = {
    16: lambda text: text == "t",
    **dict.fromkeys((20, 21, 23, 26), int),
    **dict.fromkeys((700, 701), float),
    **dict.fromkeys((114, 3802), json.loads),
}
"""Decoders by type OID. Values of other types are shown as the server writes them."""


class PostgresJob:
    """One statement on a PostgreSQL server. It uses the extended protocol, where a second statement is an error."""

    def __init__(self, url: str, timeout: float) -> None:
        self._url = url
        self._timeout = timeout
        self._connection: Any = None

    def read(self, sql: str, most: int) -> Rows:
        """Run in a read-only transaction that is always rolled back.

        A query runs as a cursor. Nothing but a query can be declared as a cursor, so not even a superuser's `COPY … TO
        PROGRAM` runs.
        """
        with self._open("BEGIN TRANSACTION READ ONLY") as send:
            send("SELECT 1")  # after a query, the transaction cannot become read-write any more
            if _DIRECT.match(sql):
                return _told(send(sql), most)
            send(f"DECLARE {_CURSOR} NO SCROLL CURSOR FOR\n{sql}")
            return _told(send(f"FETCH FORWARD {most + 1} FROM {_CURSOR}"), most)

    def write(self, sql: str, most: int) -> Rows:
        """Run in one transaction, and commit it."""
        with self._open("BEGIN") as send:
            rows = _told(send(sql), most)
            send("COMMIT")
            return rows

    def stop(self) -> None:
        if self._connection is not None:
            with suppress(Exception):  # the connection may be closed by now
                self._connection.cancel_safe(timeout=5)

    @contextmanager
    def _open(self, begin: str) -> Generator[Callable[[str], Any]]:
        import psycopg

        try:
            wait = max(2, round(self._timeout))
            db = psycopg.connect(self._url, autocommit=True, connect_timeout=wait, client_encoding="utf-8")
        except psycopg.Error as error:
            raise DatabaseError(masked(str(error))) from error
        self._connection = db
        try:
            send = _sender(db)
            send(begin)
            milliseconds = max(1, round(self._timeout * 1000))
            send(f"SET LOCAL statement_timeout = {milliseconds}")
            send(f"SET LOCAL idle_in_transaction_session_timeout = {milliseconds + 10_000}")
            yield send
        except psycopg.Error as error:
            raise DatabaseError(str(error).strip()) from error
        finally:
            self._connection = None
            with suppress(psycopg.Error):
                db.pgconn.exec_(b"ROLLBACK")
            db.close()


def _sender(db: Any) -> Callable[[str], Any]:
    """Return a function that sends one statement by the extended protocol and raises the server's error."""
    from psycopg import pq

    good = (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK)

    def send(sql: str) -> Any:
        if "\0" in sql:  # libpq would silently truncate the text there
            raise DatabaseError("the SQL holds a NUL character")
        try:
            result = db.pgconn.exec_params(sql.encode(), None)
        except UnicodeEncodeError as error:
            raise DatabaseError("the SQL holds half of a surrogate pair") from error
        if result.status in good:
            return result
        if result.status in (pq.ExecStatus.COPY_IN, pq.ExecStatus.COPY_OUT, pq.ExecStatus.COPY_BOTH):
            db.close()
            raise DatabaseError("COPY from or to the client is not supported here")
        raise DatabaseError(result.error_message.decode("utf-8", "replace").strip() or "the server did not respond")

    return send


def _told(result: Any, most: int) -> Rows:
    columns = [(result.fname(at) or b"").decode("utf-8", "replace") for at in range(result.nfields)]
    readers = [_READERS.get(result.ftype(at), str) for at in range(result.nfields)]
    rows = [
        [_value(result.get_value(row, at), reader) for at, reader in enumerate(readers)]
        for row in range(min(result.ntuples, most))
    ]
    changed = result.command_tuples
    return Rows(columns, rows, result.ntuples > most, -1 if changed is None else changed)


def _value(data: bytes | None, reader: Callable[[str], Any]) -> Any:
    if data is None:
        return None
    text = data.decode("utf-8", "replace")
    try:
        return reader(text)
    except ValueError:
        return text
