"""Backoff between connections of the bot: growing pauses with jitter, so that Discord's daily session limit is kept."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

LASTING = 60.0
"""Seconds after which a connection counts as working: the next pause is short again."""
FIRST = 1.0
LONGEST = 60.0
"""Maximum seconds between attempts that do not get as far as a new session."""
LONGEST_BETWEEN_SESSIONS = 300.0
"""Maximum seconds between short sessions. Discord allows 1,000 a day and resets the token of a bot that has more."""
LONGEST_ASKED = 3600.0
"""Maximum seconds before trying again, however long Discord wants us to wait."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Clock, sleep and randomness of the pauses, replaceable in tests."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    draw: Callable[[], float] = random.random


@dataclass(slots=True)
class Pacing:
    """The pauses of one bot. They grow until a connection lasts."""

    timing: Timing = field(default_factory=Timing)
    _next: float = FIRST
    _began: float | None = None
    """When the current connection became ready."""

    def ready(self) -> None:
        """Record that the connection is ready."""
        self._began = self.timing.now()

    def pause(self, *, was_session: bool, asked: float = 0.0) -> float:
        """Return seconds to wait before the next attempt. Half of it is jitter, so that bots do not reconnect at once.

        `was_session`: whether Discord counted the last attempt as a session. `asked`: how long Discord wants us to
        wait.
        """
        began, self._began = self._began, None
        if began is not None and self.timing.now() - began >= LASTING:
            self._next = FIRST
        pause = min(self._next, LONGEST_BETWEEN_SESSIONS if was_session else LONGEST)
        self._next = min(self._next * 2, LONGEST_BETWEEN_SESSIONS)
        return max(pause * (1 + self.timing.draw()) / 2, min(asked, LONGEST_ASKED))
