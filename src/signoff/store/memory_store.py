"""Everything in this process's memory: for tests, scripts, and agents whose questions need not outlive them."""

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
    """A `Store` on dicts. Safe to share between threads and event loops of one process.

    With `record=True` every event is kept and chained, as in a database. Without it a long-lived process does not grow
    by the calls it allows; requests stay, settled or not.
    """

    is_durable = False
    clock_lead: timedelta | None = None

    def __init__(self, *, record: bool = False) -> None:
        self.keeps_record = record
        self._tables = Tables(MemoryChain() if record else EventCount())
        # A thread that is inside comes in again when `work` leaves something for `later`.
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
            if self._working:  # this very thread is in the middle of other work, and does this when it is done
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
        mine = partial(tick)  # told apart from the same function given twice
        with self._lock:
            self._ticks = (*self._ticks, mine)

        def stop() -> None:
            with self._lock:
                self._ticks = tuple(one for one in self._ticks if one is not mine)

        return stop

    def remind(self, every: float, hook: Callable[[], None]) -> None:
        """Nothing: whoever could look for this process is this process."""

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
        """Do what was left for later. Nobody waits for it, so nobody can be told that it failed but by a warning."""
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
        """Tick. Not under the lock: whoever is told may want to look, or to stop watching, from another thread."""
        if not self._is_news:
            return
        self._is_news = False
        for tick in self._ticks:
            try:
                tick()
            except Exception as error:  # what was written is written, and one that fails must not silence the others
                warnings.warn(f"signoff store: a watcher failed: {error!r}", RuntimeWarning, stacklevel=4)
