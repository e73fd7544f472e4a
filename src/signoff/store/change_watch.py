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
        self.renew()

    def renew(self) -> None:
        """Begin with no watchers, and with no thread. In a forked process the thread and the locks are not its own."""
        self._lock = threading.Lock()
        self._ticks: dict[object, Callable[[], None]] = {}
        self._stop: threading.Event | None = None
        self._thread: threading.Thread | None = None

    def add(self, tick: Callable[[], None]) -> Callable[[], None]:
        """Call `tick` after every change. Returns a function that stops it."""
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
        """Call all watchers."""
        for tick in list(self._ticks.values()):
            try:
                tick()
            except Exception as error:  # the others must still be called
                warn(f"a watcher failed: {error!r}")

    def close(self) -> None:
        """End the thread and remove all watchers."""
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
