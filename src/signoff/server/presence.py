"""Who is looking at which request now, in this process's memory. It informs people; nothing depends on it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from signoff.core.people import Actor
from signoff.core.visible_text import visible
from signoff.server.live_events import LiveEvents, PresenceEvent

LASTS = 30.0
"""Seconds after which somebody who does not report again counts as gone."""
MOST = 10_000
"""Maximum number of entries."""


@dataclass(slots=True)
class Presence:
    """Who is looking at which request."""

    live: LiveEvents
    lasts: float = LASTS
    _looking: dict[str, dict[str, tuple[str, asyncio.TimerHandle]]] = field(
        default_factory=dict[str, "dict[str, tuple[str, asyncio.TimerHandle]]"]
    )
    """By request and person: their name, and the timer that removes them."""

    def looks(self, request_id: str, by: Actor) -> tuple[str, ...]:
        """Record that somebody looks at a request; return who does now."""
        there = self._looking.setdefault(request_id, {})
        known = there.pop(by.key, None)
        if known is None and sum(map(len, self._looking.values())) >= MOST:
            return self.of(request_id)
        if known is not None:
            known[1].cancel()
        timer = asyncio.get_running_loop().call_later(self.lasts, self.leaves, request_id, by)
        there[by.key] = (by.name, timer)
        if known is None:
            self._tell(request_id)
        return self.of(request_id)

    def leaves(self, request_id: str, by: Actor) -> tuple[str, ...]:
        """Record that somebody stopped looking; return who still does."""
        there = self._looking.get(request_id, {})
        known = there.pop(by.key, None)
        if not there:
            self._looking.pop(request_id, None)
        if known is not None:
            known[1].cancel()
            self._tell(request_id)
        return self.of(request_id)

    def of(self, request_id: str) -> tuple[str, ...]:
        """Return who looks at a request, as names that are safe to show."""
        return tuple(sorted(visible(name) for name, _ in self._looking.get(request_id, {}).values()))

    def _tell(self, request_id: str) -> None:
        self.live.tell(PresenceEvent(visible(request_id), self.of(request_id)))
