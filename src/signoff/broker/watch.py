"""Notice changes made by any process: wake waiters of a request, and know whether everything is halted."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from signoff.broker.weak_callback import register_weakly
from signoff.core.halt import halt_in
from signoff.ports import Store, Transaction

if TYPE_CHECKING:
    import asyncio

NOT_URGENT = 0.05
"""Seconds after which a change is read if nobody waits for one."""
AGAIN = 1.0
"""Seconds until a retry, after a read that failed."""


@dataclass(slots=True, eq=False)
class _Ear:
    """One event loop that listens. Each reads the store itself, because another loop may be blocked."""

    loop: asyncio.AbstractEventLoop
    users: int = 0
    signals: dict[str, list[asyncio.Event]] = field(default_factory=dict[str, "list[asyncio.Event]"])
    seen: int | None = None
    looked: int = 0
    """The number of the read that `seen` comes from."""
    is_called: bool = False
    is_called_idly: bool = False
    tasks: set[asyncio.Task[None]] = field(default_factory=set["asyncio.Task[None]"])


_listening: set[Watch] = set()
"""Watches with a waiter. The store holds them weakly, so a waiter that nobody else holds would be collected."""


class Watch:
    """One for each broker. Listens only while somebody in this process needs to know."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._ears: dict[asyncio.AbstractEventLoop, _Ear] = {}
        self._stop: Callable[[], None] | None = None
        self._is_behind = True
        """Whether something may have changed that was not read yet."""
        self._begun = self._latest = 0
        """The number of reads started, and the latest of those that finished."""
        self.halted = ""
        """The state of the switch as of the last read; empty if not halted."""

    @contextmanager
    def listening(self) -> Generator[_Ear]:
        """Within the block, changes made elsewhere reach this event loop."""
        import asyncio

        loop = asyncio.get_running_loop()
        with self._lock:
            ear = self._ears.setdefault(loop, _Ear(loop))
            ear.users += 1
            _listening.add(self)
            if self._stop is None:
                self._stop = register_weakly(self._store.watch, self._tick)
        try:
            yield ear
        finally:
            with self._lock:
                ear.users -= 1
                if not ear.users:
                    self._ears.pop(loop, None)
                if not self._ears:
                    _listening.discard(self)

    @contextmanager
    def waiting_for(self, request_id: str) -> Generator[asyncio.Event]:
        """Yield an event that is set when the request changes."""
        import asyncio

        signal = asyncio.Event()
        with self.listening() as ear:
            ear.signals.setdefault(request_id, []).append(signal)
            try:
                yield signal
            finally:
                ear.signals[request_id].remove(signal)
                if not ear.signals[request_id]:
                    del ear.signals[request_id]

    def close(self) -> None:
        with self._lock:
            stop, self._stop = self._stop, None
        if stop is not None:
            stop()

    async def catch_up(self) -> None:
        """Read the store, if anything may have changed since the last read."""
        if self._is_behind:
            with self.listening() as ear:
                await self._look(ear)

    async def _look(self, ear: _Ear) -> None:
        """Read what changed since the last read, and wake the waiters."""

        def changes(tx: Transaction) -> tuple[list[str], int, str]:
            touched = tx.record.touched(ear.seen) if ear.seen is not None else list(ear.signals)
            return list(touched), tx.record.head()[0], halt_in(tx.settings.get)

        self._is_behind = False
        self._begun += 1
        number = self._begun
        touched, seen, halted = await self._store.read(changes, own=False)
        if number > self._latest:  # otherwise a read that started later finished first and is newer
            self._latest, self.halted = number, halted
        if number > ear.looked:
            ear.looked, ear.seen = number, seen
        for request_id in touched:
            for signal in ear.signals.get(request_id, ()):
                signal.set()

    def _tick(self) -> None:
        """Called from any thread. If nobody waits, only a halt matters, and that is read after a short delay."""
        with self._lock:
            self._is_behind = True
            for ear in self._ears.values():
                with suppress(NotImplementedError):  # the loop of a workflow, where nobody waits for others
                    self._call(ear)

    def _call(self, ear: _Ear) -> None:
        if ear.loop.is_closed() or ear.is_called:
            return
        if ear.signals:
            ear.is_called = True
            ear.loop.call_soon_threadsafe(self._start_look, ear)
        elif not ear.is_called_idly:
            ear.is_called_idly = True
            ear.loop.call_soon_threadsafe(ear.loop.call_later, NOT_URGENT, self._start_look, ear)

    def _start_look(self, ear: _Ear) -> None:
        ear.is_called = ear.is_called_idly = False
        with self._lock:
            if ear not in self._ears.values():  # everybody left in the meantime, and the loop may be about to close
                return
        task = ear.loop.create_task(self._look(ear))
        ear.tasks.add(task)
        task.add_done_callback(lambda done: self._looked(ear, done))

    def _looked(self, ear: _Ear, task: asyncio.Task[None]) -> None:
        ear.tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            # Readers and writers get the error of the store. A waiter can only retry.
            self._is_behind = True
            ear.seen = None
            ear.loop.call_later(AGAIN, self._start_look, ear)
