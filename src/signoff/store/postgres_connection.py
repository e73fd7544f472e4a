"""Send queries to a PostgreSQL server with few round trips, and explain its errors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from signoff.errors import SchemaError, StoreError, StoreUnavailable, WrongUse
from signoff.store.dialect import Dialect, postgres
from signoff.store.postgres_pipeline import PostgresConnection, Query, psycopg, query
from signoff.store.store_urls import masked
from signoff.store.tables import Row

SCHEMA = "signoff"
"""The schema of the tables, unless the URL names a search path."""
MOST_READERS = 8
"""Connections of a process that read."""
MOST_CONNECTIONS = MOST_READERS + 2
"""One of them writes, and one listens for changes."""
_DEFAULTS: dict[str, Any] = {
    "application_name": "signoff",
    "client_encoding": "UTF8",
    "connect_timeout": 10,
    # TCP timeouts: a server that vanished silently is noticed within a minute.
    "tcp_user_timeout": 30_000,
    "keepalives_idle": 20,
    "keepalives_interval": 10,
    "keepalives_count": 3,
}
_PATH = re.compile(r"-c\s*search_path\s*=\s*\"?([^\s,\"]+)")


@dataclass(frozen=True)
class Address:
    """A server, a database and a schema in it."""

    url: str

    @cached_property
    def parameters(self) -> dict[str, Any]:
        """The connection parameters of the URL, with defaults for those it leaves out."""
        from psycopg.conninfo import conninfo_to_dict

        try:
            given = conninfo_to_dict(self.url)
        except psycopg.Error as error:
            raise WrongUse(f"{self} is not a PostgreSQL URL; write it as postgresql://user@host/database") from error
        return _DEFAULTS | given

    @cached_property
    def schema_name(self) -> str:
        found = _PATH.search(str(self.parameters.get("options") or ""))
        return found[1] if found else SCHEMA

    @cached_property
    def schema(self) -> str:
        """The schema name, quoted for SQL."""
        return '"' + self.schema_name.replace('"', '""') + '"'

    @cached_property
    def dialect(self) -> Dialect:
        return postgres(self.schema)

    @property
    def channel(self) -> str:
        """The LISTEN/NOTIFY channel for changes. PostgreSQL limits its name to 63 bytes."""
        return f"signoff_{self.schema_name}"[:60]

    def __str__(self) -> str:
        return masked(self.url)

    def connect(self) -> PostgresConnection:
        return PostgresConnection.connect(autocommit=True, **self.parameters)


def make_ready_to_write(connection: PostgresConnection, patience: float) -> None:
    """Set the lock timeout and the idle timeout of a connection, and make its commits durable."""
    waits, idles = f"{int(patience * 1000)}ms", f"{int(patience * 500)}ms"
    connection.execute(
        """
        select set_config('lock_timeout', %s, false), set_config('idle_in_transaction_session_timeout', %s, false),
               set_config('synchronous_commit', case setting when 'off' then 'on' else setting end, false)
        from pg_settings where name = 'synchronous_commit'
        """,
        (waits, idles),
    )


class Writing:
    """See `signoff.store.tables.Wire`. Statements without a result are buffered and sent with the next query."""

    def __init__(self, connection: PostgresConnection, *, holds: bool = True) -> None:
        self._line = connection.line
        self._holds = holds
        self._held: list[Query] = []
        self._count = 0
        self._mark = 0

    @property
    def has_changed(self) -> bool:
        return self._count > 0

    @property
    def has_changed_since_mark(self) -> bool:
        return self._count > self._mark

    def mark(self) -> None:
        self._mark = self._count

    def rows(self, sql: str, values: Sequence[Any] = ()) -> Sequence[Row]:
        return self.send(query(sql, values))

    def run(self, sql: str, values: Sequence[Any] = ()) -> None:
        self._held.append(query(sql, values))
        self._count += 1
        if not self._holds:
            self.send()

    def send(self, *queries: Query) -> Sequence[Row]:
        """Send the buffered statements and these queries in one round trip. Returns the rows of the last one."""
        held, self._held = self._held, []
        return self._line.ask(*held, *queries)


_BEGIN_READING = query("begin isolation level repeatable read read only")
_END_READING = query("rollback")


class PostgresSnapshot:
    """See `signoff.store.tables.Wire`. Reads from one snapshot, whatever is written meanwhile."""

    def __init__(self, connection: PostgresConnection) -> None:
        self._connection = connection
        self._has_begun = False

    def rows(self, sql: str, values: Sequence[Any] = ()) -> Sequence[Row]:
        asked = query(sql, values)
        if self._has_begun:
            return self._connection.line.ask(asked)
        self._has_begun = True
        return self._connection.line.ask(_BEGIN_READING, asked)

    def run(self, sql: str, values: Sequence[Any] = ()) -> None:
        raise StoreError("a read transaction made a change; use `write` for changes")

    def end(self) -> None:
        if self._has_begun and not self._connection.closed:
            self._connection.line.ask(_END_READING)


def is_lost(error: psycopg.Error, connection: PostgresConnection | None, *, is_first: bool = False) -> bool:
    """Whether the connection is lost and a new one may work, so that a retry makes sense."""
    if connection is None:  # connecting failed
        refused = "FATAL" in str(error)  # so a server is there; before login only the text of the error says so
        return bool(_SOON.search(str(error))) or not (refused or is_first)
    gone = (
        psycopg.errors.AdminShutdown,
        psycopg.errors.CrashShutdown,
        psycopg.errors.CannotConnectNow,
        psycopg.errors.IdleInTransactionSessionTimeout,
    )
    return connection.closed or connection.broken or isinstance(error, gone)


_CROWDED = "too many clients|remaining connection slots|too many connections"
_SOON = re.compile(f"starting up|shutting down|in recovery mode|{_CROWDED}")


def store_error(error: psycopg.Error, address: Address) -> StoreError:
    """Convert a PostgreSQL error into a `StoreError` that says what went wrong, where, and what to do."""
    said = _first_line(error)
    match error:
        case psycopg.errors.IntegrityError():
            return StoreError(f"{address} refused a change that contradicts what is in it: {said}")
        case psycopg.errors.DiskFull() | psycopg.errors.OutOfMemory() | psycopg.errors.TooManyConnections():
            return StoreUnavailable(
                f"the server of {address} has run out of a resource ({said}); nothing was partially written"
            )
        case psycopg.errors.QueryCanceled():
            return StoreUnavailable(
                f"the server of {address} ended a statement ({said}); try again, and see whether its statement_timeout "
                "is too short or somebody cancels statements"
            )
        case psycopg.errors.LockNotAvailable():
            return StoreUnavailable(
                f"another process has kept {address} locked for too long; look for one that hangs "
                "(select * from pg_stat_activity where application_name = 'signoff'), and try again"
            )
        case psycopg.errors.ReadOnlySqlTransaction():
            return StoreUnavailable(f"{address} is a read-only replica; name the primary server")
        case psycopg.errors.InsufficientPrivilege():
            return StoreUnavailable(
                f"{address}: {said}; the schema {address.schema} has to belong to the user: "
                f"create schema {address.schema} authorization …"
            )
        case psycopg.errors.UndefinedTable() | psycopg.errors.UndefinedColumn():
            return SchemaError(
                f"{address} lacks a part of its schema ({said}): it was changed from outside; restore a backup"
            )
        case psycopg.OperationalError() if re.search(_CROWDED, said):
            return StoreUnavailable(
                f"{address} takes no more connections ({said}); raise the limit of the server, the database or the "
                f"role: a process uses up to {MOST_CONNECTIONS}"
            )
        case psycopg.OperationalError():
            return StoreUnavailable(
                f"{address} cannot be reached ({said}); check that the server runs and the URL is right"
            )
        case _:
            return StoreError(f"{address}: {said}")


def _first_line(error: psycopg.Error) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
