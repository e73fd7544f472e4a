"""The SQLite store, the default: one file, shared by every process of a project."""

from __future__ import annotations

import os
import sqlite3
import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TypeVar

from signoff.errors import StoreError, StoreUnavailable
from signoff.store.dialect import SQLITE
from signoff.store.durable_store import DurableStore
from signoff.store.record_table import Chain
from signoff.store.sqlite_file import (
    PATIENCE,
    ReadingWire,
    WritingWire,
    begin,
    connect,
    prepare,
    rollback,
    store_error,
    sync,
)
from signoff.store.tables import Sql
from signoff.store.transaction import Transaction
from signoff.store.writer import Batch, NeedsSavepoints, Work, WriteResult

T = TypeVar("T")

LOOK = 0.025
"""Polling interval in seconds for changes by other processes."""
LOG = 4_000
"""Pages in the write-ahead log before a checkpoint, which needs fsyncs of its own. Four times SQLite's default."""
_ITS_OWN = (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.InterfaceError, sqlite3.ProgrammingError)
"""Errors that concern one piece of work. All others concern the file."""


class SqliteStore(DurableStore):
    """A store in an SQLite file, which is created if it does not exist."""

    reads_in_place = True

    def __init__(self, path: str | os.PathLike[str], *, patience: float = PATIENCE) -> None:
        self.path = Path(os.path.abspath(path))
        self._patience = patience
        self._readers = [prepare(self.path, self._patience)]
        """Those that nobody uses at the moment: whoever takes one out has it alone."""
        self._writing: sqlite3.Connection | None = None
        """The one of the writer thread, which closes it."""
        weakref.finalize(self, _close_all, self._readers).atexit = False
        status = self.path.stat()
        self._file = (status.st_dev, status.st_ino)
        self._synced = True
        super().__init__()

    async def read(self, work: Callable[[Transaction], T], *, own: bool = True) -> T:
        await self._caught_up(own)
        return self._read(work)

    def _read(self, work: Callable[[Transaction], T]) -> T:
        connection: sqlite3.Connection | None = None
        try:
            self._check_place()
            connection = self._reader()
            connection.execute("begin")
            sql = Sql(ReadingWire(connection), SQLITE)
            return work(Transaction(sql, Chain(sql)))
        except sqlite3.Error as error:
            raise store_error(error, self.path, self._patience) from error
        finally:
            if connection is not None and not self.is_inherited:  # else the work forked, and this is the new process
                rollback(connection)
                self._readers.append(connection)
                if self._writer.is_closed:
                    _close_all(self._readers)

    def _reader(self) -> sqlite3.Connection:
        try:
            return self._readers.pop()
        except IndexError:
            return connect(self.path, reads_only=True, patience=self._patience)

    def _transact(self, works: Sequence[Work], synced: bool) -> Batch:
        try:
            return self._attempt(works, careful=False, synced=synced)
        except NeedsSavepoints:
            return self._attempt(works, careful=True, synced=synced)

    def _attempt(self, works: Sequence[Work], *, careful: bool, synced: bool) -> Batch:
        """Do all work in one transaction.

        If one of several pieces fails after something was changed, the batch is done again with `careful`: each piece
        has its own savepoint.
        """
        try:
            connection = self._writer_connection()
            if synced is not self._synced:
                sync(connection, every_commit=synced)
                self._synced = synced
            begin(connection, self._patience)
        except sqlite3.Error as error:
            raise self._failed(error) from error
        before = connection.total_changes
        sql = Sql(WritingWire(connection), SQLITE)
        chain = Chain(sql)
        try:
            if careful:
                outcomes = [self._careful_piece(connection, sql, chain, work) for work in works]
            else:
                tx = Transaction(sql, chain)  # shared: the next piece need not read again
                outcomes = [self._piece(tx, work) for work in works]
                if len(works) > 1 and any(one.error for one in outcomes) and connection.total_changes != before:
                    raise NeedsSavepoints
            self.refuse_in_fork()  # the work may have forked, and this is the new process
            if connection.total_changes == before or all(outcome.error for outcome in outcomes):
                connection.execute("rollback")
                return Batch(outcomes, changed=False)
            chain.save()
            connection.execute("commit")
            return Batch(outcomes)
        except sqlite3.Error as error:
            raise self._failed(error) from error
        except BaseException:
            if not self.is_inherited:
                rollback(connection)
            raise

    def _piece(self, tx: Transaction, work: Work) -> WriteResult:
        try:
            return WriteResult(work(tx))
        except _ITS_OWN as error:
            return WriteResult(error=store_error(error, self.path))
        except sqlite3.Error:
            raise
        except BaseException as error:
            return WriteResult(error=error)

    def _careful_piece(self, connection: sqlite3.Connection, sql: Sql, chain: Chain, work: Work) -> WriteResult:
        """Do one piece of work in a savepoint. If it raises, only this piece is rolled back."""
        mark = chain.mark()
        connection.execute("savepoint piece")
        outcome = self._piece(Transaction(sql, chain), work)
        if outcome.error is not None:
            chain.back_to(mark)
            connection.execute("rollback to piece")
        connection.execute("release piece")
        return outcome

    def _writer_connection(self) -> sqlite3.Connection:
        self._check_place()
        if self._writing is None:
            connection = self._writing = connect(self.path, patience=self._patience)
            connection.execute("pragma busy_timeout = 0")  # from here on `begin` does the waiting
            connection.execute(f"pragma wal_autocheckpoint = {LOG}")
            self._synced = True
        return self._writing

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

    def _has_changed(self, looked: _Looked) -> bool:
        before = looked.version
        try:
            self._check_place()
            if looked.connection is None:
                looked.connection = connect(self.path, reads_only=True)
                before = None  # versions of two connections cannot be compared
            looked.version = looked.connection.execute("pragma data_version").fetchone()
        except StoreUnavailable:
            looked.version = None
        except sqlite3.Error:  # readers and writers get the error; a watcher can only retry
            self._stop_looking(looked)
        return looked.version != before

    def _stop_looking(self, looked: _Looked) -> None:
        if looked.connection is not None:
            looked.connection.close()
        looked.connection = looked.version = None

    def _leave(self) -> None:
        connection, self._writing = self._writing, None
        if connection is not None and not self.is_inherited:
            rollback(connection)
            connection.close()

    def close(self) -> None:
        super().close()
        _close_all(self._readers)


def _close_all(idle: list[sqlite3.Connection]) -> None:
    """Close those that nobody uses. The others are left to their threads: closed under its user, one crashes it."""
    with suppress(IndexError):  # another thread may do the same
        while True:
            idle.pop().close()


@dataclass(slots=True)
class _Looked:
    """What a watcher saw last."""

    connection: sqlite3.Connection | None = None
    version: object = None
