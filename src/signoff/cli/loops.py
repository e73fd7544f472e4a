"""The event loop of a command that waits: an interrupt ends it, whenever it comes."""

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
    """`asyncio.run`, which may miss an interrupt that comes in the instant before its loop goes to sleep."""

    async def woken() -> T:
        with _woken_by_signals():
            return await work

    return asyncio.run(woken())


@contextmanager
def _woken_by_signals() -> Generator[None]:
    """Within, whatever signal comes wakes the loop, so that its handler is called. In the main thread only."""
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
