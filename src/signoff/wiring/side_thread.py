"""Run blocking work in a daemon thread: it may hang without keeping the process from ending."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


def in_side_thread(work: Callable[[], T]) -> asyncio.Future[T]:
    """Start the work and return a future. `sys.exit` and the like, as in an imported module, become `RuntimeError`."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(value: T | None, error: Exception | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(value)  # pyright: ignore[reportArgumentType]

    def main() -> None:
        value, error = None, None
        try:
            value = work()
        except (StopIteration, SystemExit, KeyboardInterrupt) as raised:  # no future or loop takes these
            error = RuntimeError(f"it raised {raised!r}")
        except Exception as raised:
            error = raised
        with suppress(RuntimeError):  # the event loop is closed, and nobody waits any longer
            loop.call_soon_threadsafe(settle, value, error)

    threading.Thread(target=main, name="signoff side work", daemon=True).start()
    return future
