"""Calling somebody's own plain code from an event loop, while it waits for a person."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import Any

_LOOK_AFTER = 0.5
"""Seconds after which a thread that handed something to an event loop looks whether the loop is still there."""


async def in_thread(function: Callable[..., Any], *args: Any, daemon: bool = True) -> Any:
    """Call a function in a thread of its own. Whoever is cancelled leaves it to itself.

    Without `daemon` a program does not end before it does.
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
        elif isinstance(error, StopIteration):  # a future cannot hold one
            stopped = RuntimeError(f"{getattr(function, '__name__', 'the function')} raised StopIteration")
            stopped.__cause__ = error
            returned.set_exception(stopped)
        else:
            returned.set_exception(error)

    def work() -> None:
        result, error = None, None
        try:
            result = context.run(function, *args)
        except BaseException as raised:  # whoever awaits it is told
            error = raised
        try:
            loop.call_soon_threadsafe(receive, result, error)
        except RuntimeError:  # the loop is closed
            drop(result)
            return
        if inspect.isawaitable(result):  # a loop that stands still may be closed before it takes this
            while not received.wait(_LOOK_AFTER):
                if loop.is_closed():
                    drop(result)
                    return

    threading.Thread(target=work, name="signoff-approver", daemon=daemon).start()
    return await returned


def drop(result: Any) -> None:
    """Let go of what nobody will await; Python warns of a coroutine that never ran otherwise."""
    if inspect.iscoroutine(result) and inspect.getcoroutinestate(result) == inspect.CORO_CREATED:
        with suppress(RuntimeError):
            result.close()
