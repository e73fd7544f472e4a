"""Hears of changes wherever they are made: wakes who waits for a request, and knows whether the switch is pulled."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

from signoff.ports import Store, Transaction

NOT_URGENT = 0.05
"""Seconds after which a change is looked at where nobody waits for one."""
HALTED = "halted"
"""Name of the setting that says who stopped everything, when and why."""


class Watch:
    """One for each broker. Listens only while somebody in this process needs to know."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._signals: dict[str, list[tuple[asyncio.AbstractEventLoop, asyncio.Event]]] = {}
        self._loops: dict[asyncio.AbstractEventLoop, int] = {}
        self._looking: set[asyncio.AbstractEventLoop] = set()
        self._idly_looking: set[asyncio.AbstractEventLoop] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._stop: Callable[[], None] | None = None
        self._seen: int | None = None
        self._is_behind = True
        """Whether something changed that nobody has looked at."""
        self.halted = ""
        """What the switch says, as of the last look; empty while it is not pulled."""

    @contextmanager
    def listening(self) -> Generator[None]:
        """Within, changes made elsewhere reach this process."""
        loop = asyncio.get_running_loop()
        with self._lock:
            self._loops[loop] = self._loops.get(loop, 0) + 1
            if self._stop is None:
                self._stop = self._store.watch(self._tick)
        try:
            yield
        finally:
            with self._lock:
                self._loops[loop] -= 1
                if not self._loops[loop]:
                    del self._loops[loop]
                    self._looking.discard(loop)
                    self._idly_looking.discard(loop)

    @contextmanager
    def waiting_for(self, request_id: str) -> Generator[asyncio.Event]:
        """A signal that is set when something about the request changed."""
        entry = asyncio.get_running_loop(), asyncio.Event()
        with self.listening():
            with self._lock:
                self._signals.setdefault(request_id, []).append(entry)
            try:
                yield entry[1]
            finally:
                with self._lock:
                    self._signals[request_id].remove(entry)
                    if not self._signals[request_id]:
                        del self._signals[request_id]

    def close(self) -> None:
        with self._lock:
            stop, self._stop = self._stop, None
        if stop is not None:
            stop()

    async def catch_up(self) -> None:
        """Look, if anything may have changed since the last look."""
        if self._is_behind:
            await self.look()

    async def look(self) -> None:
        """See what changed since the last look, and wake those who wait for it."""

        def changes(tx: Transaction) -> tuple[list[str], int, str]:
            touched = tx.touched(self._seen) if self._seen is not None else list(self._signals)
            return list(touched), tx.head()[0], tx.setting(HALTED) or ""

        self._is_behind = False
        touched, self._seen, self.halted = await self._store.read(changes, own=False)
        with self._lock:
            for request_id in touched:
                for loop, signal in self._signals.get(request_id, ()):
                    if not loop.is_closed():
                        loop.call_soon_threadsafe(signal.set)

    def _tick(self) -> None:
        """Called from any thread. One look of one loop serves all; a tick during a look leads to another."""
        with self._lock:
            self._is_behind = True
            loop = next((one for one in self._loops if not one.is_closed()), None)
            if loop is None or loop in self._looking:
                return
            if self._signals:
                self._looking.add(loop)
                loop.call_soon_threadsafe(self._start_look, loop)
            elif loop not in self._idly_looking:
                # Only the switch may concern anybody here: no need to look after every change.
                self._idly_looking.add(loop)
                loop.call_soon_threadsafe(loop.call_later, NOT_URGENT, self._start_look, loop)

    def _start_look(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            self._looking.discard(loop)
            self._idly_looking.discard(loop)
        task = loop.create_task(self.look())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
