"""The store in memory: the tables of the SQLite store, in a database without a file, for one process."""

from __future__ import annotations

import sqlite3
import threading
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import cache, cached_property, partial
from typing import Any, TypeVar

from signoff.core.record import START, Entry, EventDraft
from signoff.errors import StoreError
from signoff.store.dialect import SQLITE
from signoff.store.record_table import Chain
from signoff.store.schema import statements
from signoff.store.tables import Row, Sql
from signoff.store.transaction import Transaction

T = TypeVar("T")
READ_ONLY = "a read transaction made a change; use `write` for changes"
TOUCHED = 4_096
"""How many of the last events are remembered when the audit log is not kept."""


@cache
def _empty() -> bytes:
    """Return an empty database, made once for each process."""
    made = sqlite3.connect(":memory:", isolation_level=None)
    for statement in statements(SQLITE):
        made.execute(statement)
    image = made.serialize()
    made.close()
    return image


class _Wire:
    """Sends queries to a database of its own, in a transaction that begins with the first change.

    See `signoff.store.tables.Wire`. The database is opened when it is first used: calls that policy allows need none.
    """

    def __init__(self) -> None:
        self.reads_only = False
        self._changes = 0
        """How many changes there were when the transaction began."""

    @cached_property
    def _database(self) -> sqlite3.Connection:
        database = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        database.deserialize(_empty())
        database.execute("pragma foreign_keys = on")
        return database

    def rows(self, sql: str, values: Sequence[Any] = ()) -> Sequence[Row]:
        return self._database.execute(sql, values).fetchall()

    def run(self, sql: str, values: Sequence[Any] = ()) -> None:
        if self.reads_only:
            raise StoreError(READ_ONLY)
        if not self._database.in_transaction:
            self._database.execute("begin")
            self._changes = self._database.total_changes
        self._database.execute(sql, values)

    def commit(self) -> bool:
        """End the transaction. Returns whether anything was changed."""
        if "_database" not in self.__dict__ or not self._database.in_transaction:
            return False
        self._database.execute("commit")
        return self._database.total_changes > self._changes

    def roll_back(self) -> None:
        if "_database" in self.__dict__ and self._database.in_transaction:
            self._database.execute("rollback")


class EventCount:
    """Replaces the audit log: only the number of events, and which requests the last ones were about."""

    def __init__(self, requests: Callable[[], Sequence[str]]) -> None:
        """`requests` returns the ids of all requests."""
        self._requests = requests
        self.count = 0
        self._last: deque[tuple[int, str]] = deque()
        self._forgotten = 0

    @property
    def newest(self) -> int:
        """The number of the last event that watchers need to be told of."""
        return self._last[-1][0] if self._last else self._forgotten

    def append(self, drafts: Sequence[EventDraft]) -> None:
        for draft in drafts:
            self.count += 1
            if draft.request:
                self._last.append((self.count, draft.request))

    def back_to(self, count: int) -> None:
        self.count = count
        while self._last and self._last[-1][0] > count:
            self._last.pop()

    def trim(self) -> None:
        while len(self._last) > TOUCHED:
            self._forgotten, _ = self._last.popleft()

    def head(self) -> tuple[int, str]:
        return self.count, START

    def entries(self, **_: object) -> Sequence[Entry]:
        return ()

    def touched(self, after: int) -> Sequence[str]:
        """Return the requests of the events after a number; all requests if those are forgotten."""
        if after < self._forgotten:
            return self._requests()
        return list(dict.fromkeys(request for count, request in self._last if count > after))


class MemoryStore:
    """A `Store` that ends with the process. Thread-safe, also across event loops.

    With `record=True` it keeps the audit log, hash-chained as in a file. Without it, the memory of a long-lived
    process does not grow with the calls it allows. Requests stay, settled or not.
    """

    is_durable = False
    clock_lead: timedelta | None = None

    def __init__(self, *, record: bool = False) -> None:
        self.keeps_record = record
        self._wire = _Wire()
        self._events = None if record else EventCount(lambda: self._tx.requests.like("", limit=2**31))
        self._begin_anew()
        # Reentrant, because `work` may call `later` in the same thread.
        self._lock = threading.RLock()
        self._working = False
        self._left: deque[tuple[str, Callable[[Transaction], object]]] = deque()
        self._ticks: tuple[Callable[[], None], ...] = ()
        self._is_news = False
        self.commits = 0
        """How many writes changed something."""

    def _begin_anew(self) -> None:
        """Forget what was read. Transactions share it: nobody else can change anything."""
        sql = Sql(self._wire, SQLITE)
        self._tx = Transaction(sql, Chain(sql))
        if self._events is not None:
            vars(self._tx)["record"] = self._events

    async def write(self, name: str, work: Callable[[Transaction], T], *, synced: bool = True) -> T:
        return self._do(work)

    def later(self, name: str, work: Callable[[Transaction], object]) -> None:
        with self._lock:
            self._left.append((name, work))
            if self._working:  # reentrant call: the work in progress does this at its end
                return
            self._do_the_rest()
        self._tell()

    async def read(self, work: Callable[[Transaction], T], *, own: bool = True) -> T:
        return self._do(work, reads_only=True)

    def watch(self, tick: Callable[[], None]) -> Callable[[], None]:
        mine = partial(tick)  # a new object, so that one function can watch twice
        with self._lock:
            self._ticks = (*self._ticks, mine)

        def stop() -> None:
            with self._lock:
                self._ticks = tuple(one for one in self._ticks if one is not mine)

        return stop

    def remind(self, every: float, hook: Callable[[], None]) -> Callable[[], None]:
        """Never call it: no other process could use the reminder."""
        return lambda: None

    async def flush(self) -> None: ...

    def close(self) -> None:
        with self._lock:
            self._ticks = ()

    def _do(self, work: Callable[[Transaction], T], *, reads_only: bool = False) -> T:
        try:
            with self._lock:
                try:
                    return self._alone(work, reads_only=reads_only)
                finally:
                    self._do_the_rest()
        finally:
            self._tell()

    def _do_the_rest(self) -> None:
        """Do deferred work. No caller waits for it, so a failure becomes a warning."""
        while self._left:
            name, work = self._left.popleft()
            try:
                self._alone(work)
            except Exception as error:
                warnings.warn(f"signoff store: {name!r} was not written: {error!r}", RuntimeWarning, stacklevel=4)

    def _alone(self, work: Callable[[Transaction], T], *, reads_only: bool = False) -> T:
        events, tx = self._events, self._tx
        count, newest = (events.count, events.newest) if events is not None else (0, 0)
        self._working, self._wire.reads_only = True, reads_only
        try:
            result = work(tx)
            if reads_only and events is not None and events.count > count:
                raise StoreError(READ_ONLY)
            if tx.chain.has_moved:
                tx.chain.save()
                tx.chain.start_at(*tx.chain.end)  # the next transaction goes on from here, with the same chain
            changed = is_news = self._wire.commit()
        except BaseException as error:
            self._wire.roll_back()
            if events is not None:
                events.back_to(count)
            self._begin_anew()
            if isinstance(error, sqlite3.Error):
                raise StoreError(f"the store in memory refused a change: {error}") from error
            raise
        finally:
            self._working = self._wire.reads_only = False
        if events is not None:
            changed, is_news = changed or events.count > count, changed or events.newest > newest
            events.trim()
        self._is_news |= is_news
        self.commits += changed
        return result

    def _tell(self) -> None:
        """Call the watchers, outside the lock: a watcher may read, or stop watching, from another thread."""
        if not self._is_news:
            return
        self._is_news = False
        for tick in self._ticks:
            try:
                tick()
            except Exception as error:  # the write is done, and the others must be called
                warnings.warn(f"signoff store: a watcher failed: {error!r}", RuntimeWarning, stacklevel=4)
