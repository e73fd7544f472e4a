"""Run the user's blocking code in a thread, awaited from an event loop."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import Any

_LOOK_AFTER = 0.5
"""Interval in seconds at which a thread with an unreceived awaitable checks whether the event loop was closed."""


async def in_thread(function: Callable[..., Any], *args: Any, daemon: bool = True) -> Any:
    """Call a function in its own thread and return its result. Cancelling the await leaves the thread running.

    Without `daemon` the program does not exit before the function returns.
    """
    loop, context = asyncio.get_running_loop(), copy_context()
    returned: asyncio.Future[Any] = loop.create_future()
    received = threading.Event()

    def receive(result: Any, error: BaseException | None) -> None:
        received.set()
        if returned.done():
            drop(result)
        elif error is None:
            returned.set_result(result)
        elif isinstance(error, StopIteration):  # a future cannot hold StopIteration
            stopped = RuntimeError(f"{getattr(function, '__name__', 'the function')} raised StopIteration")
            stopped.__cause__ = error
            returned.set_exception(stopped)
        else:
            returned.set_exception(error)

    def work() -> None:
        result, error = None, None
        try:
            result = context.run(function, *args)
        except BaseException as raised:  # raised again where the result is awaited
            error = raised
        try:
            loop.call_soon_threadsafe(receive, result, error)
        except RuntimeError:  # the loop is closed
            drop(result)
            return
        if inspect.isawaitable(result):  # a loop that does not run may be closed before it receives this
            while not received.wait(_LOOK_AFTER):
                if loop.is_closed():
                    drop(result)
                    return

    threading.Thread(target=work, name="signoff-approver", daemon=daemon).start()
    return await returned


def drop(result: Any) -> None:
    """Close a coroutine that nobody will await; otherwise Python warns that it was never awaited."""
    if inspect.iscoroutine(result) and inspect.getcoroutinestate(result) == inspect.CORO_CREATED:
        with suppress(RuntimeError):
            result.close()
