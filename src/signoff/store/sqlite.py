"""The SQLite store, the default: one file, shared by every process of a project."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TypeVar

from signoff.errors import StoreError, StoreUnavailable
from signoff.ports import Transaction
from signoff.store.durable_store import DurableStore
from signoff.store.sql import SqlChain, SqlTransaction
from signoff.store.sqlite_file import (
    PATIENCE,
    QUERIES,
    GaveWay,
    ReadingWire,
    Upgrade,
    WritingWire,
    begin,
    connect,
    prepare,
    rollback,
    store_error,
)
from signoff.store.sqlite_fork import OpenConnections, leave_behind, refuse_after_unsafe_fork, uses_sqlite
from signoff.store.writer import Batch, NeedsSavepoints, Work, WriteResult

T = TypeVar("T")

LOOK = 0.025
"""Polling interval in seconds for changes by other processes."""
LOG = 4_000
"""Pages in the write-ahead log before a checkpoint, which needs fsyncs of its own. Four times SQLite's default."""
_ITS_OWN = (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.InterfaceError, sqlite3.ProgrammingError)
"""Errors that concern one piece of work. All others concern the file."""


class SqliteStore(DurableStore):
    """A store in an SQLite file, which is created if it does not exist.

    With `upgrade="auto"` the file of an older signoff is migrated after a backup next to it. With `"refuse"` a
    `SchemaError` says what to run.
    """

    reads_in_place = True

    def __init__(self, path: str | os.PathLike[str], *, upgrade: Upgrade = "auto", patience: float = PATIENCE) -> None:
        self.path = Path(os.path.abspath(path))
        self._patience = patience
        self._open = OpenConnections(self)
        self._prepare(upgrade)
        status = self.path.stat()
        self._file = (status.st_dev, status.st_ino)
        self._synced = True
        super().__init__()

    @uses_sqlite
    def _prepare(self, upgrade: Upgrade) -> None:
        self._open.readers.append(prepare(self.path, upgrade, self._patience))

    async def read(self, work: Callable[[Transaction], T], *, own: bool = True) -> T:
        await self._caught_up(own)
        return self._read(work)

    @uses_sqlite
    def _read(self, work: Callable[[Transaction], T]) -> T:
        connection: sqlite3.Connection | None = None
        readers = self._open.readers
        try:
            self._check_place()
            connection = self._reader()
            connection.execute("begin")
            wire = ReadingWire(connection)
            return work(SqlTransaction(wire, QUERIES, SqlChain(wire, QUERIES)))
        except sqlite3.Error as error:
            raise store_error(error, self.path, self._patience) from error
        finally:
            if readers is not self._open.readers:  # the work forked, and this is the new process
                leave_behind(connection)
            elif connection is not None:
                rollback(connection)
                readers.append(connection)

    def _reader(self) -> sqlite3.Connection:
        try:
            return self._open.readers.pop()
        except IndexError:
            return connect(self.path, reads_only=True, patience=self._patience)

    def _transact(self, works: Sequence[Work], synced: bool) -> Batch:
        careful, patience = False, self._patience
        while True:
            try:
                return self._attempt(works, careful=careful, synced=synced, patience=patience)
            except NeedsSavepoints:
                careful = True
            except GaveWay as while_waiting:
                patience = while_waiting.patience

    @uses_sqlite
    def _attempt(self, works: Sequence[Work], *, careful: bool, synced: bool, patience: float) -> Batch:
        """Do all work in one transaction.

        If one of several pieces fails after something was changed, the batch is done again with `careful`: each piece
        has its own savepoint.
        """
        try:
            connection = self._writing()
            if synced is not self._synced:
                connection.execute(f"pragma synchronous = {'full' if synced else 'normal'}")
                self._synced = synced
            begin(connection, patience, gives_way=True)
        except sqlite3.Error as error:
            raise self._failed(error) from error
        before = connection.total_changes
        wire = WritingWire(connection)
        chain = SqlChain(wire, QUERIES)
        try:
            if careful:
                outcomes = [self._careful_piece(connection, wire, chain, work) for work in works]
            else:
                tx = SqlTransaction(wire, QUERIES, chain)  # shared: the next piece need not read again
                outcomes = [self._piece(tx, work) for work in works]
                if len(works) > 1 and any(one.error for one in outcomes) and connection.total_changes != before:
                    raise NeedsSavepoints
            if connection is not self._open.writing:  # the work forked, and this is the new process
                leave_behind(connection)
                refuse_after_unsafe_fork()
            if connection.total_changes == before or all(outcome.error for outcome in outcomes):
                connection.execute("rollback")
                return Batch(outcomes, changed=False)
            chain.save()
            connection.execute("commit")
            return Batch(outcomes)
        except sqlite3.Error as error:
            raise self._failed(error) from error
        except BaseException:
            if connection is self._open.writing:
                rollback(connection)
            raise

    def _piece(self, tx: SqlTransaction, work: Work) -> WriteResult:
        try:
            return WriteResult(work(tx))
        except _ITS_OWN as error:
            return WriteResult(error=store_error(error, self.path))
        except sqlite3.Error:
            raise
        except BaseException as error:
            return WriteResult(error=error)

    def _careful_piece(
        self, connection: sqlite3.Connection, wire: WritingWire, chain: SqlChain, work: Work
    ) -> WriteResult:
        """Do one piece of work in a savepoint. If it raises, only this piece is rolled back."""
        mark = chain.mark()
        connection.execute("savepoint piece")
        outcome = self._piece(SqlTransaction(wire, QUERIES, chain), work)
        if outcome.error is not None:
            chain.back_to(mark)
            connection.execute("rollback to piece")
        connection.execute("release piece")
        return outcome

    def _writing(self) -> sqlite3.Connection:
        self._check_place()
        if self._open.writing is None:
            connection = self._open.writing = connect(self.path, patience=self._patience)
            connection.execute("pragma busy_timeout = 0")  # from here on `begin` does the waiting
            connection.execute(f"pragma wal_autocheckpoint = {LOG}")
            self._synced = True
        return self._open.writing

    def _check_place(self) -> None:
        """Raise `StoreUnavailable` if the file was moved, removed or replaced.

        A file that is there now is another store, or a part of one.
        """
        try:
            status = os.stat(self.path)
        except OSError:
            status = None
        if status is None or (status.st_dev, status.st_ino) != self._file:
            raise StoreUnavailable(
                f"{self.path} was moved or removed while it was in use; put it back, or restart to create a new one"
            )

    def _failed(self, error: sqlite3.Error) -> StoreError:
        """Roll back and close the connection, whatever state it is in; the next transaction opens a new one."""
        self._leave()
        return store_error(error, self.path, self._patience)

    def _look(self, stop: Event, tick: Callable[[], None]) -> None:
        looked = _Looked()
        try:
            while not stop.is_set():
                if self._has_changed(looked):
                    tick()
                stop.wait(LOOK)
        finally:
            self._stop_looking(looked)

    @uses_sqlite
    def _has_changed(self, looked: _Looked) -> bool:
        before = looked.version
        try:
            self._check_place()
            if looked.connection not in self._open.watching:  # not opened yet, or closed before a fork
                looked.connection = connect(self.path, reads_only=True)
                self._open.watching.add(looked.connection)
                before = None  # versions of two connections cannot be compared
            looked.version = looked.connection.execute("pragma data_version").fetchone()
        except StoreUnavailable:
            looked.version = None
        except sqlite3.Error:  # readers and writers get the error; a watcher can only retry
            self._stop_looking(looked)
        return looked.version != before

    @uses_sqlite
    def _stop_looking(self, looked: _Looked) -> None:
        if looked.connection in self._open.watching:
            self._open.watching.remove(looked.connection)
            looked.connection.close()
        looked.connection = looked.version = None

    @uses_sqlite
    def _leave(self) -> None:
        connection, self._open.writing = self._open.writing, None
        if connection is not None:
            rollback(connection)
            connection.close()

    def close(self) -> None:
        super().close()
        self._open.close_idle()


@dataclass(slots=True)
class _Looked:
    """What a watcher saw last."""

    connection: sqlite3.Connection | None = None
    version: object = None
