"""Listen to events of a Discord client without replacing its owner's handlers.

`Client.wait_for` calls a check function for every event of a kind until it returns True. Ours returns False until it is
stopped, so it receives them all, on any client, without replacing the owner's `on_interaction`, and ends when the wait
is cancelled.
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
"""Timeout in seconds for work in progress when listening stops."""


class Listening:
    """The events that are listened to on one client, and the tasks that handle them.

    Starting takes a moment; events that arrive before `open` are queued.
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
        """Call `handler` with every event of this name, each in its own task."""

        def heard(*args: Any) -> bool:
            if self._is_stopped:
                return True  # the client then drops this check
            if self._is_open:
                self.begin(handler(*args))
            elif len(self._early) < _MOST_EARLY:
                self._early.append((handler, args))
            return False

        waiting: Any = self._client.wait_for(event, check=heard)  # pyright: ignore[reportUnknownMemberType, reportCallIssue, reportArgumentType]
        self._waiting.append(asyncio.ensure_future(waiting))
        self._checks.append(heard)

    def open(self) -> None:
        """Handle all events, beginning with the queued ones."""
        self._is_open = True
        for handler, args in self._early:
            self.begin(handler(*args))
        self._early.clear()

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a background task; a failure is logged and stops nothing else."""
        task = asyncio.get_running_loop().create_task(self._guarded(work))
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:
            _log.error("an event from Discord could not be handled: %s", place_of(error))

    async def stop(self) -> None:
        """Stop listening. Waits for work in progress and cancels what exceeds the timeout."""
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
