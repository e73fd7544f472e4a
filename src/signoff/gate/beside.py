"""Runs side by side in one call: one that pauses takes the call down, but cuts off nothing that was approved."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from datetime import timedelta

from signoff.ports import Clock

PATIENCE = timedelta(minutes=1)
"""How long a run that pauses waits for approved calls beside it. Not for ever: one of them may be waiting for it."""


class Beside:
    """The approved calls that are running in the runs inside one call."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._running = 0
        self._waiting: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []

    @contextmanager
    def running(self) -> Generator[None]:
        """Within, one of them is running."""
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            if not self._running:
                for loop, calm in list(self._waiting):  # a tool may run agents in threads of their own
                    if not loop.is_closed():
                        loop.call_soon_threadsafe(_set, calm)

    async def quiet(self) -> None:
        """Return once none is running, or after a while."""
        if not self._running:
            return
        loop = asyncio.get_running_loop()
        waiter = (loop, loop.create_future())
        self._waiting.append(waiter)
        limit = asyncio.ensure_future(self._clock.sleep_until(self._clock.now() + PATIENCE))
        try:
            await asyncio.wait([waiter[1], limit], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._waiting.remove(waiter)
            limit.cancel()


def _set(calm: asyncio.Future[None]) -> None:
    if not calm.done():
        calm.set_result(None)
