"""Base class of the database stores: a writer thread, and change watchers."""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import TypeVar

from signoff.errors import StoreError, StoreUnavailable
from signoff.store.transaction import Transaction
from signoff.store.writer import Batch, Work, Writer, warn

T = TypeVar("T")

IN_FORK = (
    "this process was forked from one that had its store open, which it must not use; open the store after the fork "
    "(gunicorn without --preload, uWSGI with lazy-apps = true), or start processes with `spawn`"
)


Look = Callable[[threading.Event, Callable[[], None]], None]
"""Looks for changes until the event is set, and calls the callback after each. Runs in a thread of its own."""


class Watchers:
    """The watchers of one store. A thread looks for changes while there are any."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._lock = threading.Lock()
        self._ticks: dict[object, Callable[[], None]] = {}
        self._stop: threading.Event | None = None
        self._threads: list[threading.Thread] = []
        """The one that looks, and those that were told to stop and may not have stopped yet."""

    def add(self, tick: Callable[[], None]) -> Callable[[], None]:
        """Call `tick` after every change. Returns a function that stops it."""
        key = object()
        with self._lock:
            self._ticks[key] = tick
            if self._stop is None:
                self._stop = threading.Event()
                thread = threading.Thread(
                    target=self._look, args=(self._stop, self.tick), name="signoff store watch", daemon=True
                )
                self._threads = [*(one for one in self._threads if one.is_alive()), thread]
                thread.start()

        def stop() -> None:
            with self._lock:
                self._ticks.pop(key, None)
                if not self._ticks:
                    self._end()

        return stop

    def tick(self) -> None:
        """Call all watchers."""
        for tick in list(self._ticks.values()):
            try:
                tick()
            except Exception as error:  # the others must still be called
                warn(f"a watcher failed: {error!r}")

    def close(self) -> None:
        """Remove all watchers, and wait until no thread looks for them any more."""
        with self._lock:
            self._ticks.clear()
            threads = list(self._threads)
            self._end()
        for thread in threads:
            if thread is not threading.current_thread():
                thread.join()

    def _end(self) -> None:
        if self._stop is not None:
            self._stop.set()
            self._stop = None


class DurableStore(ABC):
    """A `signoff.ports.Store` over a database."""

    is_durable = True
    keeps_record = True
    reads_in_place = False
    """Whether a read blocks until it is done and never suspends to the event loop."""

    def __init__(self) -> None:
        self._hooks: dict[object, Callable[[], None]] = {}
        self._pid = os.getpid()
        self._watchers = Watchers(self._look)
        _stores.add(self)
        self._writer = Writer(self._transact, committed=self._watchers.tick, leave=self._leave)

    @property
    def clock_lead(self) -> timedelta | None:
        return None

    @abstractmethod
    def _transact(self, works: Sequence[Work], synced: bool) -> Batch:
        """Do work in one transaction; see `signoff.store.writer.Transact`."""

    @abstractmethod
    def _look(self, stop: threading.Event, tick: Callable[[], None]) -> None:
        """Look for changes; see `Look`."""

    @abstractmethod
    def _leave(self) -> None:
        """Close what the writer thread opened."""

    @property
    def is_inherited(self) -> bool:
        """Whether the parent of this process opened it. Nothing of it may be used here, or closed."""
        return self._pid != os.getpid()

    def refuse_in_fork(self) -> None:
        """Raise if the parent of this process opened the store."""
        if self.is_inherited:
            raise StoreUnavailable(IN_FORK)

    async def write(self, name: str, work: Callable[[Transaction], T], *, synced: bool = True) -> T:
        self.refuse_in_fork()
        return await self._writer.write(name, work, synced=synced)

    def later(self, name: str, work: Callable[[Transaction], object]) -> None:
        self.refuse_in_fork()
        self._writer.later(name, work)

    async def flush(self) -> None:
        self.refuse_in_fork()
        await self._writer.flush()

    async def _caught_up(self, own: bool) -> None:
        """Before a read, wait until deferred work (`later`) is written, unless the reader does not need to see it."""
        self.refuse_in_fork()
        self._writer.refuse_if_closed()
        if own and self._writer.is_behind:
            with suppress(StoreError):  # a failed write must not prevent reading
                await self._writer.flush()

    def watch(self, tick: Callable[[], None]) -> Callable[[], None]:
        self.refuse_in_fork()
        return self._watchers.add(tick)

    def close(self) -> None:
        if not self.is_inherited:
            self._watchers.close()
            self._writer.close()
        _stores.discard(self)

    def remind(self, every: float, hook: Callable[[], None]) -> Callable[[], None]:
        key = object()
        self._hooks[key] = hook
        self.every, self.idle = every, self._remind

        def stop() -> None:
            self._hooks.pop(key, None)

        return stop

    def _remind(self) -> None:
        for hook in list(self._hooks.values()):
            hook()

    @property
    def commits(self) -> int:
        """How many transactions this process made durable."""
        return self._writer.commits

    @property
    def idle(self) -> Callable[[], None] | None:
        """A hook that the writer thread calls about every `every` seconds, once something has been written."""
        return self._writer.idle

    @idle.setter
    def idle(self, hook: Callable[[], None] | None) -> None:
        self._writer.idle = hook

    @property
    def every(self) -> float:
        return self._writer.every

    @every.setter
    def every(self, seconds: float) -> None:
        self._writer.every = seconds


_stores: weakref.WeakSet[DurableStore] = weakref.WeakSet()


def _close_all() -> None:
    """Close all stores at exit, so that no deferred work is lost."""
    for store in list(_stores):
        try:
            store.close()
        except Exception as error:  # the others must still be closed
            warn(f"a store was not closed: {error!r}")


atexit.register(_close_all)
