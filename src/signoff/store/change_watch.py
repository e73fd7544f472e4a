"""Telling whoever watches a store that something changed."""

from __future__ import annotations

import threading
from collections.abc import Callable

from signoff.store.writer import warn

Look = Callable[[threading.Event, Callable[[], None]], None]
"""Looks for changes until the event is set, and calls the other when there is one. Runs in a thread of its own."""


class Watchers:
    """Those who watch one store. A thread looks on their behalf while there are any."""

    def __init__(self, look: Look) -> None:
        self._look = look
        self._lock = threading.Lock()
        self._ticks: dict[object, Callable[[], None]] = {}
        self._stop: threading.Event | None = None
        self._thread: threading.Thread | None = None

    def add(self, tick: Callable[[], None]) -> Callable[[], None]:
        """Returns how to stop."""
        key = object()
        with self._lock:
            self._ticks[key] = tick
            if self._stop is None:
                self._stop = threading.Event()
                self._thread = threading.Thread(
                    target=self._look, args=(self._stop, self.tick), name="signoff store watch", daemon=True
                )
                self._thread.start()

        def stop() -> None:
            with self._lock:
                self._ticks.pop(key, None)
                if not self._ticks:
                    self._end()

        return stop

    def tick(self) -> None:
        """Tell everyone."""
        for tick in list(self._ticks.values()):
            try:
                tick()
            except Exception as error:  # one that fails must not silence the others
                warn(f"a watcher failed: {error!r}")

    def close(self) -> None:
        """End the thread and forget everyone."""
        with self._lock:
            self._ticks.clear()
            thread = self._thread
            self._end()
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _end(self) -> None:
        if self._stop is not None:
            self._stop.set()
            self._stop = self._thread = None
