"""Notify watchers of a store that something changed."""

from __future__ import annotations

import threading
from collections.abc import Callable

from signoff.store.writer import warn

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
