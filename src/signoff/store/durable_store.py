"""What both databases have in common: a queue before them, watchers behind them, and care around a fork."""

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
"""What a forked process must neither use nor close: it belongs to its parent."""


class DurableStore(ABC):
    """A `signoff.ports.Store` over a database."""

    is_durable = True
    keeps_record = True
    reads_in_place = False
    """Whether a read is done when it returns, and needs no event loop."""
    clock_lead: timedelta | None = None

    def __init__(self) -> None:
        self._hooks: list[Callable[[], None]] = []
        self._begin()
        _stores.add(self)

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._watchers = Watchers(self._look)
        self._writer = Writer(self._transact, committed=self._watchers.tick, leave=self._leave)

    def _here(self) -> Writer:
        """The writer of this process. A fork has neither its parent's threads nor the right to its connections."""
        if not self.is_of_this_process:
            _left_behind.extend((self._writer, self._watchers, self._abandoned()))
            idle, every = self._writer.idle, self._writer.every
            self._begin()
            self._writer.every, self._writer.idle = every, idle
        return self._writer

    @property
    def is_of_this_process(self) -> bool:
        """Not so in a fork that has not used it yet."""
        return self._pid == os.getpid()

    @abstractmethod
    def _transact(self, works: Sequence[Work], synced: bool) -> Batch:
        """Do work in one transaction; see `signoff.store.writer.Transact`."""

    @abstractmethod
    def _look(self, stop: Event, tick: Callable[[], None]) -> None:
        """Look for changes; see `signoff.store.change_watch.Look`."""

    @abstractmethod
    def _leave(self) -> None:
        """Close what the writing thread opened."""

    @abstractmethod
    def _abandoned(self) -> object:
        """Every connection there is, which are forgotten at once."""

    async def write(self, name: str, work: Callable[[Transaction], T], *, synced: bool = True) -> T:
        return await self._here().write(name, work, synced=synced)

    def later(self, name: str, work: Callable[[Transaction], object]) -> None:
        self._here().later(name, work)

    async def flush(self) -> None:
        await self._here().flush()

    async def _caught_up(self, own: bool) -> None:
        """Before a read: have what was left for later written, unless nobody needs to see it."""
        writer = self._here()
        writer.refuse_if_closed()
        if own and writer.is_behind:
            with suppress(StoreError):  # that it cannot be written is no reason not to read what is there
                await writer.flush()

    def watch(self, tick: Callable[[], None]) -> Callable[[], None]:
        self._here()
        return self._watchers.add(tick)

    def close(self) -> None:
        writer = self._here()
        self._watchers.close()
        writer.close()

    def remind(self, every: float, hook: Callable[[], None]) -> None:
        self._hooks.append(hook)
        self.every, self.idle = every, self._remind

    def _remind(self) -> None:
        for hook in self._hooks:
            hook()

    @property
    def commits(self) -> int:
        """How many transactions this process made durable."""
        return self._writer.commits

    @property
    def idle(self) -> Callable[[], None] | None:
        """Called from the writing thread about every `every` seconds, once something has been written."""
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
    """Nothing that was left for later is lost because a program ends."""
    for store in list(_stores):
        if store.is_of_this_process:
            store.close()


atexit.register(_close_all)
