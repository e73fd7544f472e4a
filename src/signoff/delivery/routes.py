"""Routes: a channel and how it is used, its state while it runs, and the backoff between retries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from signoff.core.lease import Outage
from signoff.errors import ChannelFailed, WrongUse
from signoff.ports import Channel, Reminding

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0
"""Seconds between retries. Exponential backoff: each pause is twice the one before."""
LONGEST_ASKED = 86_400.0
"""Upper limit in seconds for the pause that a service asks for."""


@dataclass(frozen=True, slots=True)
class Route:
    """A channel and how it is used."""

    channel: Channel
    timeout: timedelta | None = None
    """Timeout after which requests shown there are denied, if neither the rule nor another channel sets one."""

    @property
    def name(self) -> str:
        return self.channel.name


@dataclass(slots=True, eq=False)
class ActiveChannel:
    """A route in use, with its state."""

    route: Route
    is_open: bool = False
    opening: bool = False
    was_tried: bool = False
    """Whether this process has tried to open it."""
    wrong: WrongUse | None = None
    """Why it can never be used."""
    down: Outage | None = None
    """Set while the whole channel is down."""
    failures: int = 0
    """Counts failures of the whole channel. An attempt that was in progress during one proves nothing new."""
    busy: set[str] = field(default_factory=set[str])
    """Trails with an attempt in progress."""

    @property
    def name(self) -> str:
        return self.route.channel.name

    @property
    def reminds(self) -> bool:
        """Whether the channel can send reminders."""
        return isinstance(self.route.channel, Reminding)

    def rests(self, now: datetime) -> bool:
        """Whether the channel is in backoff."""
        down = self.down  # read once: another thread may change it
        return down is not None and down.due is not None and down.due > now

    def fell(self, failure: ChannelFailed, now: datetime, seen: int) -> Outage | None:
        """Record that the channel is down and return its state. `seen` is `failures` when the attempt began."""
        if seen == self.failures or self.down is None:
            attempts = self.down.attempts + 1 if self.down is not None else 1
            self.down = Outage(
                since=self.down.since if self.down is not None else now,
                problem=str(failure),
                attempts=attempts,
                due=now + retry_pause(failure, attempts),
                hopeless=not failure.again,
            )
            self.failures += 1
        return self.down

    def worked(self, seen: int) -> Outage | None:
        """Record a success. Return what is still down: a success that began before the last failure proves nothing."""
        if seen == self.failures:
            self.down = None
        return self.down


def retry_pause(failure: ChannelFailed, attempts: int) -> timedelta:
    """Return how long to wait after this many failures: what the service asked for, or exponential backoff."""
    if failure.after is not None and not math.isnan(failure.after):
        return timedelta(seconds=min(max(failure.after, 0.0), LONGEST_ASKED))
    if not failure.again:
        return timedelta(seconds=LONGEST_PAUSE)
    return timedelta(seconds=min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(attempts - 1, 10)))


def active_channels(routes: Sequence[Route]) -> dict[str, ActiveChannel]:
    """Return the routes by name. Raises `WrongUse` if two have the same."""
    active: dict[str, ActiveChannel] = {}
    for route in routes:
        if route.name in active:
            raise WrongUse(f"two channels are called {route.name!r}")
        active[route.name] = ActiveChannel(route)
    return active
