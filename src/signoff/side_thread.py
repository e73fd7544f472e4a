"""Run blocking work in a thread of its own, awaited from an event loop: it may hang without holding up anything."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import Any, TypeVar

T = TypeVar("T")

_LOOK_AFTER = 0.5
"""Interval in seconds at which a thread with an unreceived awaitable checks whether the event loop was closed."""


def in_side_thread(
    work: Callable[[], T],
    *,
    name: str = "signoff side work",
    daemon: bool = True,
    raises: type[BaseException] = Exception,
) -> asyncio.Future[T]:
    """Start blocking work in a thread and return a future of its result. Cancelling that leaves the thread running.

    Without `daemon` the program does not exit before the work returns. `sys.exit` and the like, as in an imported
    module, become a `RuntimeError`; with `raises=BaseException` they are raised as they are.
    """
    loop, context = asyncio.get_running_loop(), copy_context()
    future: asyncio.Future[T] = loop.create_future()
    received = threading.Event()

    def settle(value: Any, error: BaseException | None) -> None:
        received.set()
        if future.done():
            drop(value)
        elif error is not None:
            future.set_exception(error)
        else:
            future.set_result(value)

    def main() -> None:
        value, error = None, None
        try:
            value = context.run(work)
        except BaseException as raised:  # raised again where the result is awaited
            error = raised
            if isinstance(raised, StopIteration) or not isinstance(raised, raises):  # no future takes the first
                error = RuntimeError(f"it raised {raised!r}")
                error.__cause__ = raised
        try:
            loop.call_soon_threadsafe(settle, value, error)
        except RuntimeError:  # the loop is closed, and nobody waits any longer
            drop(value)
            return
        if inspect.isawaitable(value):  # a loop that does not run may be closed before it receives this
            while not received.wait(_LOOK_AFTER):
                if loop.is_closed():
                    drop(value)
                    return

    threading.Thread(target=main, name=name, daemon=daemon).start()
    return future


def drop(result: Any) -> None:
    """Close a coroutine that nobody will await; otherwise Python warns that it was never awaited."""
    if inspect.iscoroutine(result) and inspect.getcoroutinestate(result) == inspect.CORO_CREATED:
        with suppress(RuntimeError):
            result.close()
