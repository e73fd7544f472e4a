"""Base class of the database stores: a writer thread, change watchers, and fork safety."""

from __future__ import annotations

import atexit
import os
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from threading import Event
from typing import TypeVar

from signoff.errors import StoreError
from signoff.ports import Transaction
from signoff.store.change_watch import Watchers
from signoff.store.writer import Batch, Work, Writer

T = TypeVar("T")

_left_behind: list[object] = []
"""References to the parent's objects in a forked process, which must neither use nor close them."""


class DurableStore(ABC):
    """A `signoff.ports.Store` over a database."""

    is_durable = True
    keeps_record = True
    reads_in_place = False
    """Whether a read blocks until it is done and never suspends to the event loop."""
    clock_lead: timedelta | None = None

    def __init__(self) -> None:
        self._hooks: dict[object, Callable[[], None]] = {}
        self._begin()
        _stores.add(self)

    def _begin(self) -> None:
        self._watchers = Watchers(self._look)
        self._writer = Writer(self._transact, committed=self._watchers.tick, leave=self._leave)
        self._pid = os.getpid()  # last: another thread of a forked process must not find the writer of the parent

    def _here(self) -> Writer:
        """Return the writer of this process.

        After a fork, a new one is made: a forked process has no writer thread and must not use its parent's
        connections.
        """
        if not self.is_of_this_process:
            _left_behind.extend((self._writer, self._watchers, self._abandoned()))
            before = self._writer
            self._begin()
            self._writer.every, self._writer.idle = before.every, before.idle
            if before.is_closed:
                self._writer.close()
        return self._writer

    @property
    def is_of_this_process(self) -> bool:
        """False in a forked process that has not used the store yet."""
        return self._pid == os.getpid()

    @abstractmethod
    def _transact(self, works: Sequence[Work], synced: bool) -> Batch:
        """Do work in one transaction; see `signoff.store.writer.Transact`."""

    @abstractmethod
    def _look(self, stop: Event, tick: Callable[[], None]) -> None:
        """Look for changes; see `signoff.store.change_watch.Look`."""

    @abstractmethod
    def _leave(self) -> None:
        """Close what the writer thread opened."""

    @abstractmethod
    def _abandoned(self) -> object:
        """Return all open connections and forget them, after a fork."""

    async def write(self, name: str, work: Callable[[Transaction], T], *, synced: bool = True) -> T:
        return await self._here().write(name, work, synced=synced)

    def later(self, name: str, work: Callable[[Transaction], object]) -> None:
        self._here().later(name, work)

    async def flush(self) -> None:
        await self._here().flush()

    async def _caught_up(self, own: bool) -> None:
        """Before a read, wait until deferred work (`later`) is written, unless the reader does not need to see it."""
        writer = self._here()
        writer.refuse_if_closed()
        if own and writer.is_behind:
            with suppress(StoreError):  # a failed write must not prevent reading
                await writer.flush()

    def watch(self, tick: Callable[[], None]) -> Callable[[], None]:
        self._here()
        return self._watchers.add(tick)

    def close(self) -> None:
        writer = self._here()
        self._watchers.close()
        writer.close()
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
        return self._here().idle

    @idle.setter
    def idle(self, hook: Callable[[], None] | None) -> None:
        self._here().idle = hook

    @property
    def every(self) -> float:
        return self._here().every

    @every.setter
    def every(self, seconds: float) -> None:
        self._here().every = seconds


_stores: weakref.WeakSet[DurableStore] = weakref.WeakSet()


def _close_all() -> None:
    """Close all stores at exit, so that no deferred work is lost."""
    for store in list(_stores):
        if store.is_of_this_process:
            store.close()


atexit.register(_close_all)
