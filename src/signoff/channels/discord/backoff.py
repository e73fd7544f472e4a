"""How fast a bot connects again: pauses that grow, so that Discord's daily limit is never reached."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

LASTING = 60.0
"""Seconds after which a connection counts as one that works: the next pause is a short one again."""
FIRST = 1.0
LONGEST = 60.0
"""Seconds between tries that do not get as far as a new session."""
LONGEST_BETWEEN_SESSIONS = 300.0
"""Seconds between new sessions that end soon. Discord takes 1,000 a day and resets the token of a bot with more."""
LONGEST_ASKED = 3600.0
"""Seconds after which we look again whether we may connect, however long Discord wants us to wait."""


@dataclass(frozen=True, slots=True)
class Timing:
    """The time that connections go by."""

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    draw: Callable[[], float] = random.random


@dataclass(slots=True)
class Pacing:
    """The pauses of one bot. They grow until a connection lasts."""

    timing: Timing = field(default_factory=Timing)
    _next: float = FIRST
    _began: float | None = None
    """When the connection that we have was ready."""

    def ready(self) -> None:
        """A connection is there."""
        self._began = self.timing.now()

    def pause(self, *, was_session: bool, asked: float = 0.0) -> float:
        """Seconds to wait before the next try. Half of it is drawn: bots that fell together come back apart.

        `was_session`: whether Discord counts the last try. `asked`: how long Discord wants us to wait.
        """
        began, self._began = self._began, None
        if began is not None and self.timing.now() - began >= LASTING:
            self._next = FIRST
        pause = min(self._next, LONGEST_BETWEEN_SESSIONS if was_session else LONGEST)
        self._next = min(self._next * 2, LONGEST_BETWEEN_SESSIONS)
        return max(pause * (1 + self.timing.draw()) / 2, min(asked, LONGEST_ASKED))
