"""The event loop of commands that wait: SIGINT always ends it."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
from collections.abc import Coroutine, Generator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Like `asyncio.run`, which may miss an interrupt in the instant before its loop goes to sleep (race condition).

    `asyncio.run` also spells out its task twice, with all that it returned, to put the signal handler back (before
    Python 3.12): here the task returns nothing.
    """
    result: list[T] = []

    async def woken() -> None:
        with _woken_by_signals():
            result.append(await work)

    asyncio.run(woken())
    return result[0]


class WorkInterrupted(Exception):
    """An interrupt ended only the current work."""


async def until_interrupted(work: Coroutine[Any, Any, T]) -> T:
    """Await `work`. SIGINT ends only this work (`WorkInterrupted`), unless it is ignored or off the main thread."""
    task, loop = asyncio.ensure_future(work), asyncio.get_running_loop()
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN or threading.current_thread() is not threading.main_thread():
        return await task
    was_interrupted = False

    def stop(*_: object) -> None:
        nonlocal was_interrupted
        was_interrupted = True
        loop.call_soon_threadsafe(task.cancel)

    signal.signal(signal.SIGINT, stop)
    try:
        return await task
    except asyncio.CancelledError:
        if was_interrupted and task.cancelled():
            raise WorkInterrupted from None
        raise
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _woken_by_signals() -> Generator[None]:
    """Let any signal wake the event loop, so that its handler is called. Main thread only."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    ear, mouth = socket.socketpair()
    with ear, mouth:
        ear.setblocking(False)
        mouth.setblocking(False)
        loop.add_reader(ear, ear.recv, 4_096)
        before = signal.set_wakeup_fd(mouth.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(before)
            loop.remove_reader(ear)
