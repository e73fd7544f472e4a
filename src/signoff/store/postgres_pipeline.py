"""Send several queries in one message (pipeline mode), because a commit mostly costs network round trips.

psycopg has a pipeline mode too, but it takes longer than the server does. This uses psycopg's `pq` layer directly and
knows only the few types that our tables have.
"""

from __future__ import annotations

import select
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from signoff.errors import MissingExtra, StoreError
from signoff.store.tables import Row

try:
    import psycopg
    from psycopg import pq
except ImportError as error:
    raise MissingExtra("A PostgreSQL store", "postgres") from error

Query = tuple[str, Sequence[bytes | None], Sequence[int]]
"""SQL with `$1`, `$2` …, the encoded values, and the format of each: 1 for binary, 0 for text."""

_FAILED = (pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.BAD_RESPONSE)
_DONE = pq.ExecStatus.COMMAND_OK


def query(sql: str, values: Sequence[str | int | bytes | None] = ()) -> Query:
    return sql, [_written(value) for value in values], [isinstance(value, bytes) for value in values]


def _written(value: str | int | bytes | None) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, int):
        return b"%d" % value
    if "\0" in value:  # libpq would silently truncate the text there
        raise StoreError(f"PostgreSQL cannot store a text with a NUL character: {value[:40]!r}")
    return value.encode()


def _number(data: bytes) -> int:
    return int.from_bytes(data, "big", signed=True)


def _same(data: bytes) -> bytes:
    return data


_READERS: dict[int, Callable[[bytes], Any]] = {20: _number, 21: _number, 23: _number, 17: _same}
"""Decoders by type OID: integers and bytes. Everything else is text."""


class PostgresConnection(psycopg.Connection[tuple[Any, ...]]):
    """A connection with a `line` for pipelined queries. Between those, psycopg's own methods work as usual."""

    prepares = True
    """Whether to use prepared statements. Not behind a pooler, where queries may reach different connections."""

    limit: float | None = None
    """Timeout in seconds: a server that does not respond for so long counts as gone."""

    @cached_property
    def line(self) -> PostgresLine:
        return PostgresLine(self)


class PostgresLine:
    """Pipelines queries on a connection. Only one thread may use it at a time."""

    def __init__(self, connection: PostgresConnection) -> None:
        self._connection = connection
        self._names: dict[str, bytes] = {}
        self._count = 0
        self._poll = select.poll()
        self._poll.register(connection.fileno(), select.POLLIN)

    def ask(self, *queries: Query) -> Sequence[Row]:
        """Send all queries in one round trip and return the rows of the last one.

        If one fails, those after it are not executed, and its error is raised.
        """
        pgconn = self._connection.pgconn
        prepared: dict[int, str] = {}
        try:
            pgconn.enter_pipeline_mode()
            expected = 0
            for one in queries:
                expected += self._send(pgconn, one, prepared, expected)
            pgconn.pipeline_sync()
            results = [self._result(pgconn) for _ in range(expected)]
            self._next(pgconn)  # the end of the pipeline
            pgconn.exit_pipeline_mode()
        except BaseException:
            self._connection.close()  # the next result could belong to any of these queries
            raise
        for place, sql in prepared.items():
            if results[place].status != _DONE:
                del self._names[sql]
        for result in results:
            if result.status in _FAILED:
                raise _error(result)
        return _rows(results[-1])

    def _send(self, pgconn: pq.abc.PGconn, one: Query, prepared: dict[int, str], place: int) -> int:
        """Send a query, preparing it if necessary. Returns the number of results to expect."""
        sql, values, formats = one
        if not self._connection.prepares:
            pgconn.send_query_params(sql.encode(), values, None, formats, 1)
            return 1
        name, answers = self._names.get(sql), 1
        if name is None:
            self._count += 1
            name, answers = b"signoff %d" % self._count, 2
            pgconn.send_prepare(name, sql.encode())
            self._names[sql] = name
            prepared[place] = sql
        pgconn.send_query_prepared(name, values, formats, 1)
        return answers

    def _result(self, pgconn: pq.abc.PGconn) -> pq.abc.PGresult:
        result = self._next(pgconn)
        if result is None:
            raise psycopg.OperationalError("the server closed the connection")
        self._next(pgconn)  # the None after each result
        return result

    def _next(self, pgconn: pq.abc.PGconn) -> pq.abc.PGresult | None:
        while pgconn.flush():
            self._wait(pgconn, select.POLLIN | select.POLLOUT)
        while pgconn.is_busy():
            self._wait(pgconn, select.POLLIN)
        return pgconn.get_result()

    def _wait(self, pgconn: pq.abc.PGconn, what: int) -> None:
        limit = self._connection.limit
        self._poll.modify(pgconn.socket, what)
        if not self._poll.poll(None if limit is None else limit * 1000):
            raise psycopg.OperationalError(f"the server did not respond within {limit:g} s")
        pgconn.consume_input()


def _error(result: pq.abc.PGresult) -> psycopg.Error:
    state = (result.error_field(pq.DiagnosticField.SQLSTATE) or b"").decode()
    said = result.error_field(pq.DiagnosticField.MESSAGE_PRIMARY) or result.error_message
    try:
        kind: type[psycopg.Error] = psycopg.errors.lookup(state)
    except KeyError:
        kind = psycopg.OperationalError if not state else psycopg.DatabaseError
    return kind(said.decode("utf-8", "replace").strip() or "the server gave no reason")


def _rows(result: pq.abc.PGresult) -> Sequence[Row]:
    columns = range(result.nfields)
    readers = [_READERS.get(result.ftype(column), bytes.decode) for column in columns]
    return [
        tuple(None if (data := result.get_value(row, at)) is None else readers[at](data) for at in columns)
        for row in range(result.ntuples)
    ]
