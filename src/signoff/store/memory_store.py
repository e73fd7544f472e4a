"""The store in memory, for tests, scripts, and agents whose requests need not outlive the process."""

from __future__ import annotations

import threading
import warnings
from collections import deque
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import TypeVar

from signoff.errors import StoreError
from signoff.ports import Transaction
from signoff.store.memory_record import EventCount, MemoryChain
from signoff.store.memory_tables import Tables

T = TypeVar("T")


class MemoryStore:
    """A `Store` made of dicts. Thread-safe, also across event loops of one process.

    With `record=True` it keeps the audit log, hash-chained as in a database. Without it, the memory of a long-lived
    process does not grow with the calls it allows. Requests stay, settled or not.
    """

    is_durable = False
    clock_lead: timedelta | None = None

    def __init__(self, *, record: bool = False) -> None:
        self.keeps_record = record
        self._tables = Tables(MemoryChain() if record else EventCount())
        # Reentrant, because `work` may call `later` in the same thread.
        self._lock = threading.RLock()
        self._working = False
        self._left: deque[tuple[str, Callable[[Transaction], object]]] = deque()
        self._ticks: tuple[Callable[[], None], ...] = ()
        self._is_news = False
        self.commits = 0
        """How many writes changed something."""

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
        return self._do(partial(self._look, work))

    def _look(self, work: Callable[[Transaction], T], tx: Transaction) -> T:
        result = work(tx)
        if self._tables.changes:
            raise StoreError("a read transaction made a change; use `write` for changes")
        return result

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

    def _do(self, work: Callable[[Transaction], T]) -> T:
        try:
            with self._lock:
                try:
                    return self._alone(work)
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

    def _alone(self, work: Callable[[Transaction], T]) -> T:
        self._working = True
        try:
            result = work(self._tables)
        except BaseException:
            self._tables.changes.roll_back()
            raise
        finally:
            self._working = False
        if self._tables.changes:
            self.commits += 1
            self._is_news |= self._tables.commit()
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
