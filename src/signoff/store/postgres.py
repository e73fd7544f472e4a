"""The PostgreSQL store, for several machines. Writers take turns through a row lock."""

from __future__ import annotations

import asyncio
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypeVar, cast

from signoff.errors import MissingExtra, StoreError, StoreUnavailable
from signoff.processes import steady_seconds
from signoff.store import postgres_schema
from signoff.store.durable_store import DurableStore
from signoff.store.postgres_connection import (
    MOST_READERS,
    Address,
    PostgresSnapshot,
    Writing,
    is_lost,
    make_ready_to_write,
    store_error,
)
from signoff.store.postgres_pipeline import PostgresConnection, psycopg, query
from signoff.store.record_table import Chain, one_end
from signoff.store.tables import Sql
from signoff.store.transaction import Transaction
from signoff.store.writer import Batch, NeedsSavepoints, Work, WriteResult

try:
    from psycopg_pool import ConnectionPool, PoolTimeout
except ImportError as error:
    raise MissingExtra("A PostgreSQL store", "postgres") from error

if TYPE_CHECKING:
    from typing import LiteralString

T = TypeVar("T")

PATIENCE = 30.0
"""Timeout in seconds, over all retries, for reaching a lost server or waiting for other writers."""
CLOCKS_AGREE = timedelta(seconds=2)
"""A smaller clock skew between the server and this machine counts as none."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
CLOCK_HOLDS = 10.0
"""Seconds after which a read asks for the server's clock again. Each write does."""
PATIENCE_AT_THE_END = 3.0
"""The same timeout while the program exits."""
LOOK = 0.05
"""Polling interval in seconds where LISTEN/NOTIFY is not available."""
LOOK_ANYWAY = 1.0
"""Polling interval in seconds with LISTEN/NOTIFY, because a notification may get lost."""

_BEGIN = query("begin isolation level read committed")
_CLOCK = query("select (extract(epoch from clock_timestamp()) * 1000000)::bigint")
_LOCK = """
    select seq, hash, number, (extract(epoch from clock_timestamp()) * 1000000)::bigint
    from (select seq, hash, txid_current() as number from {s}chain for update) locked
"""
"""The clock is read once the lock is held, which may have taken long."""
_HAS_EVENT = "select 1 from {s}events where seq = ? and hash = ?"
_WRITES = "select writes from {s}chain"
_COMMIT = query("commit")
_ROLLBACK = query("rollback")
_UNSYNCED = query("set local synchronous_commit to off")
_SAVEPOINT = query("savepoint piece")
_RELEASE = query("release savepoint piece")
_BACK = query("rollback to savepoint piece")


# The pool logs errors that the caller gets as an exception anyway. Without a handler they would be printed to stderr.
logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())


def machine_time() -> datetime:
    """The time of this machine's own clock."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class ServerTime:
    """What the server's clock said, and when, by a clock that does not jump."""

    said: datetime
    since: float = field(default_factory=steady_seconds)

    @property
    def age(self) -> float:
        return steady_seconds() - self.since

    @property
    def lead(self) -> timedelta:
        """How far the server's clock is ahead of this machine's, which may have been set since."""
        lead = self.said + timedelta(seconds=self.age) - machine_time()
        return lead if abs(lead) >= CLOCKS_AGREE else timedelta(0)


@dataclass(frozen=True, slots=True)
class _UnknownCommit:
    """A batch whose commit was in flight when the connection broke, so its outcome is unknown."""

    transaction: int
    end: tuple[int, str] | None
    """The last event it appended."""
    batch: Batch


class PostgresStore(DurableStore):
    """A store in a PostgreSQL schema: the first one in the URL's search path, or `signoff`.

    It connects on first use and creates the tables in an empty schema. Behind a connection pooler in transaction mode
    (PgBouncer), LISTEN/NOTIFY does not work: `listen=False` polls for changes instead and prepares no statements.
    """

    def __init__(self, url: str, *, listen: bool = True, patience: float = PATIENCE) -> None:
        self._address = Address(url)
        self._dialect = self._address.dialect
        self._patience = patience
        self._listen = listen
        self._me = secrets.token_hex(8)
        self._connection: PostgresConnection | None = None
        self._doubt: _UnknownCommit | None = None
        self._pool: ConnectionPool[PostgresConnection] | None = None
        self._opening = threading.Lock()
        self._time: ServerTime | None = None
        self._is_checked = False
        """Whether the server was reached and its schema checked. Before that, an unreachable server is not retried."""
        super().__init__()

    @property
    def clock_lead(self) -> timedelta:
        return self._time.lead if self._time is not None else timedelta(0)

    @property
    def place(self) -> str:
        """Host, port, database and schema, without credentials."""
        given = self._address.parameters
        parts = (given.get("host"), given.get("port"), given.get("dbname"), self._address.schema_name)
        return "postgresql:" + "/".join(str(part or "") for part in parts)

    # reading

    async def read(self, work: Callable[[Transaction], T], *, own: bool = True) -> T:
        await self._caught_up(own)
        return await asyncio.to_thread(self._read, work)

    def _read(self, work: Callable[[Transaction], T]) -> T:
        pauses = self._pauses()
        while True:
            connection: PostgresConnection | None = None
            is_first = not self._is_checked
            try:
                connection = self._address.connect() if is_first else self._reader()
                return self._looked(connection, work)
            except psycopg.Error as error:
                if not is_lost(error, connection, is_first=is_first):
                    raise store_error(error, self._address) from error
                self._pause(pauses, error)
            finally:
                if connection is not None:
                    self._give_back(connection, to_pool=not is_first)

    def _give_back(self, connection: PostgresConnection, *, to_pool: bool) -> None:
        """Return a connection to the pool, or close the first one.

        The first connection is not from the pool, so that a command that reads once needs none.
        """
        if to_pool:
            self._pooled().putconn(connection)
        else:
            connection.close()

    def _looked(self, connection: PostgresConnection, work: Callable[[Transaction], T]) -> T:
        self._check(connection)
        if self._time is None or not 0 <= self._time.age < CLOCK_HOLDS:
            [(said,)] = connection.line.ask(_CLOCK)
            self._heard(said)
        wire = PostgresSnapshot(connection)
        try:
            sql = Sql(wire, self._dialect)
            return work(Transaction(sql, Chain(sql)))
        finally:
            with suppress(psycopg.Error):
                wire.end()

    def _reader(self) -> PostgresConnection:
        try:
            return self._pooled().getconn(timeout=min(2.0, self._patience))
        except PoolTimeout:
            self._address.connect().close()  # raises the real error, if there is one
            return self._pooled().getconn()

    def _pooled(self) -> ConnectionPool[PostgresConnection]:
        with self._opening:
            if self._pool is None:
                self._pool = ConnectionPool[PostgresConnection](
                    connection_class=PostgresConnection,
                    kwargs={"autocommit": True, **self._address.parameters},
                    configure=self._configure,
                    min_size=0,
                    max_size=MOST_READERS,
                    timeout=self._patience,
                    num_workers=1,
                    name="signoff",
                    open=True,
                )
            return self._pool

    def _configure(self, connection: PostgresConnection) -> None:
        """Set the options of a connection, made here or by the pool."""
        connection.prepares = self._listen
        connection.limit = 2 * self._patience

    def _check(self, connection: PostgresConnection) -> None:
        """Check the schema version once, and create the tables if the schema is empty."""
        if not self._is_checked:
            postgres_schema.ensure(connection, self._address)
            self._is_checked = True

    def _heard(self, microseconds: int) -> None:
        """Remember what the server's clock said just now. Fractions of a second are network latency."""
        self._time = ServerTime(EPOCH + timedelta(microseconds=microseconds))

    # writing

    def _transact(self, works: Sequence[Work], synced: bool) -> Batch:
        careful = False
        pauses = self._pauses()
        self._doubt = None
        while True:
            is_first = not self._is_checked
            try:
                return self._attempt(works, careful=careful, synced=synced)
            except NeedsSavepoints:
                careful = True
                with suppress(psycopg.Error):  # the next attempt notices a lost connection
                    self._undo()
            except psycopg.Error as error:
                lost = is_lost(error, self._connection, is_first=is_first)
                self._leave()
                if not lost:
                    raise store_error(error, self._address) from error
                self._pause(pauses, error)
            except BaseException:
                self._leave()
                raise

    def _attempt(self, works: Sequence[Work], *, careful: bool, synced: bool) -> Batch:
        """Do all work in one transaction.

        Changes are buffered and sent together, because they almost never fail. If one does, the batch is done again
        with `careful`: each change is sent at once and each piece of work has its own savepoint.
        """
        wire = Writing(self._writing(), holds=not careful)
        rows = wire.send(_BEGIN, query(self._dialect[_LOCK]))
        (seq, link), (number, said) = one_end(rows), rows[0][2:]
        self._heard(said)
        if (batch := self._in_doubt(wire)) is not None:
            return batch
        chain = Chain(Sql(wire, self._dialect))
        chain.start_at(seq, link)
        piece = self._careful_piece if careful else self._piece
        outcomes = [piece(wire, chain, work) for work in works]
        self.refuse_in_fork()  # the work may have forked, and this is the new process
        if not wire.has_changed or all(outcome.error for outcome in outcomes):
            self._undo()
            return Batch(outcomes, changed=False)
        has_moved = chain.has_moved
        chain.save(always=True)
        batch = Batch(outcomes)
        self._doubt = _UnknownCommit(number, chain.end if has_moved else None, batch)
        try:
            told = query("select pg_notify($1, $2)", (self._address.channel, self._me))
            wire.send(*(() if synced else (_UNSYNCED,)), told, _COMMIT)
        except psycopg.Error as error:
            if not is_lost(error, self._connection):
                self._doubt = None  # the server refused the commit, so its outcome is known
                if careful:
                    raise
                raise NeedsSavepoints from error
            raise
        self._doubt = None
        return batch

    def _in_doubt(self, wire: Writing) -> Batch | None:
        """Return the result of the batch whose commit was in flight when the connection broke, if it was committed.

        This is called with the lock held, so that transaction has ended, one way or the other.
        """
        doubt, self._doubt = self._doubt, None
        if doubt is None:
            return None
        if doubt.end is not None:
            arrived = bool(wire.rows(self._dialect[_HAS_EVENT], doubt.end))
        else:
            [(status,)] = wire.rows("select txid_status($1)", (doubt.transaction,))
            arrived = status == "committed"
        if arrived:
            self._undo()
            return doubt.batch
        return None

    def _piece(self, wire: Writing, chain: Chain, work: Work) -> WriteResult:
        wire.mark()
        try:
            return WriteResult(work(Transaction(Sql(wire, self._dialect), chain)))
        except psycopg.Error as error:
            if is_lost(error, self._connection):
                raise
            raise NeedsSavepoints from error
        except BaseException as error:
            if wire.has_changed_since_mark:
                raise NeedsSavepoints from error
            return WriteResult(error=error)

    def _careful_piece(self, wire: Writing, chain: Chain, work: Work) -> WriteResult:
        mark = chain.mark()
        wire.send(_SAVEPOINT)
        try:
            value = work(Transaction(Sql(wire, self._dialect), chain))
            wire.send(_RELEASE)
            return WriteResult(value)
        except psycopg.Error as error:
            if is_lost(error, self._connection) or not isinstance(error, psycopg.IntegrityError | psycopg.DataError):
                raise
            outcome = WriteResult(error=store_error(error, self._address))
        except BaseException as error:
            outcome = WriteResult(error=error)
        chain.back_to(mark)
        wire.send(_BACK)
        return outcome

    def _writing(self) -> PostgresConnection:
        if self._connection is None:
            self._connection = self._address.connect()
            self._configure(self._connection)
            make_ready_to_write(self._connection, self._patience)
        self._check(self._connection)
        return self._connection

    def _undo(self) -> None:
        if self._connection is not None:
            self._connection.line.ask(_ROLLBACK)

    def _pauses(self) -> Iterator[float]:
        """Yield the delays between retries (exponential backoff), until the timeout is used up."""
        since, pause = time.monotonic(), 0.05
        while (left := since + self._patience - time.monotonic()) > 0:
            yield min(pause, left)
            pause = min(pause * 2, 2.0)

    def _pause(self, pauses: Iterator[float], error: psycopg.Error) -> None:
        pause = next(pauses, None)
        if pause is None:
            unsure = "; it is unknown whether the last change was written" if self._doubt is not None else ""
            told = f"{store_error(error, self._address)}; retried for {self._patience:g} s{unsure}"
            raise StoreUnavailable(told) from error
        time.sleep(pause)

    # watching

    def _look(self, stop: threading.Event, tick: Callable[[], None]) -> None:
        seen = -1
        while not stop.is_set():
            connection: PostgresConnection | None = None
            with suppress(psycopg.Error, StoreError):  # readers and writers get the error; a watcher can only retry
                connection = self._address.connect()
                self._configure(connection)
                self._check(connection)
                listens = self._listen and self._listens(connection)
                while not stop.is_set():
                    seen = self._compare(connection, seen, tick)
                    if listens:
                        self._hear(connection, stop, tick)
                    else:
                        stop.wait(LOOK)
            if connection is not None:
                connection.close()
            stop.wait(LOOK_ANYWAY)

    def _listens(self, connection: PostgresConnection) -> bool:
        with suppress(psycopg.DatabaseError):
            connection.execute(cast("LiteralString", f'listen "{self._address.channel}"'))
            return True
        return False

    def _compare(self, connection: PostgresConnection, seen: int, tick: Callable[[], None]) -> int:
        [(now,)] = connection.line.ask(query(self._dialect[_WRITES]))
        if now != seen:
            tick()
        return now

    def _hear(self, connection: PostgresConnection, stop: threading.Event, tick: Callable[[], None]) -> None:
        """Pass on notifications of other processes for a while. Watchers were already told about our own changes."""
        until = time.monotonic() + LOOK_ANYWAY
        while not stop.is_set() and time.monotonic() < until:
            if any(one.payload != self._me for one in connection.notifies(timeout=0.1, stop_after=1)):
                tick()

    # ending

    def _leave(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and not self.is_inherited:
            connection.close()

    def close(self) -> None:
        self._patience = min(self._patience, PATIENCE_AT_THE_END)
        super().close()
        if self._pool is not None and not self.is_inherited:
            self._pool.close()
