"""Hearing what a client hears, beside whatever its owner listens to.

`Client.wait_for` asks a function about every event of a kind until it says yes. Ours never does: so it hears them all,
on any client, without taking the place of the owner's `on_interaction`, and is gone when the waiting is cancelled.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import discord

from signoff.channels.discord.library_internals import forget_checks
from signoff.channels.discord.problems import place_of

_log = logging.getLogger("signoff.discord")

Handler = Callable[..., Coroutine[Any, Any, None]]
_MOST_EARLY = 1000
_GOODBYE = 5.0
"""Seconds that work in hand gets to come to an end."""


class Listening:
    """What is listened to on one client, and the work that came of it.

    Whoever starts needs a moment until they can handle anything; what is heard until then waits for `open`.
    """

    def __init__(self, client: discord.Client) -> None:
        self._client = client
        self._is_open = False
        self._is_stopped = False
        self._early: list[tuple[Handler, tuple[Any, ...]]] = []
        self._waiting: list[asyncio.Task[Any]] = []
        self._checks: list[Callable[..., bool]] = []
        self._work: set[asyncio.Task[None]] = set()

    def to(self, event: str, handler: Handler) -> None:
        """Have `handler` called with every event of this name, each in a task of its own."""

        def heard(*args: Any) -> bool:
            if self._is_stopped:
                return True  # the client forgets us
            if self._is_open:
                self.begin(handler(*args))
            elif len(self._early) < _MOST_EARLY:
                self._early.append((handler, args))
            return False

        waiting: Any = self._client.wait_for(event, check=heard)  # pyright: ignore[reportUnknownMemberType, reportCallIssue, reportArgumentType]
        self._waiting.append(asyncio.ensure_future(waiting))
        self._checks.append(heard)

    def open(self) -> None:
        """See to everything, beginning with what was heard before."""
        self._is_open = True
        for handler, args in self._early:
            self.begin(handler(*args))
        self._early.clear()

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something beside everything else; a failure is logged and ends nothing."""
        task = asyncio.get_running_loop().create_task(self._guarded(work))
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:
            _log.error("an event from Discord could not be handled: %s", place_of(error))

    async def stop(self) -> None:
        """Hear nothing more, and return once what was begun is done, or cancelled if that takes long."""
        self._is_stopped = True
        for waiting in self._waiting:
            waiting.cancel()
        await asyncio.gather(*self._waiting, return_exceptions=True)
        self._waiting.clear()
        self._early.clear()
        forget_checks(self._client, self._checks)
        self._checks.clear()
        if self._work:
            _, late = await asyncio.wait(self._work, timeout=_GOODBYE)
            for work in late:
                work.cancel()
            await asyncio.gather(*late, return_exceptions=True)
