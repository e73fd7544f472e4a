"""A channel in use, and how it is doing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from signoff.core.lease import Down
from signoff.errors import ChannelFailed, WrongUse
from signoff.ports import Channel, Reminding

FIRST_PAUSE = 1.0
LONGEST_PAUSE = 60.0
"""Seconds between tries, from the first failure on: each pause is twice the one before."""
LONGEST_ASKED = 86_400.0
"""Seconds: a channel that asks for more time than that is tried sooner."""
PATIENCE = timedelta(minutes=2)
"""How long a channel that has a backup may fail before that takes over."""


@dataclass(frozen=True, slots=True)
class Route:
    """A channel, and how it is used: always, or as the backup of another."""

    channel: Channel
    backup_for: str = ""
    """Name of the channel that it replaces when that one fails; empty: it is always used."""
    timeout: timedelta | None = None
    """How long a request shown there waits before it is denied, if neither its rule nor another channel says so."""

    @property
    def name(self) -> str:
        return self.channel.name


@dataclass(slots=True, eq=False)
class ActiveChannel:
    """A route in use."""

    route: Route
    backup: str = ""
    """Name of the channel that takes over."""
    is_open: bool = False
    opening: bool = False
    was_tried: bool = False
    """Whether this process has heard how opening it goes. What is known from before is no reason to give up."""
    wrong: WrongUse | None = None
    """Why it can never be used."""
    down: Down | None = None
    """Set while nothing can be shown."""
    failures: int = 0
    """Counts failures of the whole: what was on its way when one happened says nothing new."""
    worked_at: datetime | None = None
    """When something was shown last."""
    busy: set[str] = field(default_factory=set[str])
    """Trails that something is on its way for."""

    @property
    def name(self) -> str:
        return self.route.channel.name

    @property
    def reminds(self) -> bool:
        """Whether people can be told again there of what stands there."""
        return isinstance(self.route.channel, Reminding)

    def rests(self, now: datetime) -> bool:
        """Whether nothing is to be tried now."""
        down = self.down  # may change at any time, as a look may be made by another thread
        return down is not None and down.due is not None and down.due > now

    def fell(self, failure: ChannelFailed, now: datetime, seen: int) -> Down | None:
        """Nothing can be shown. `seen` is `failures` as it was when the try began; what is down then."""
        if seen == self.failures or self.down is None:
            attempts = self.down.attempts + 1 if self.down is not None else 1
            self.down = Down(
                since=self.down.since if self.down is not None else now,
                problem=str(failure),
                attempts=attempts,
                due=now + pause(failure, attempts),
                hopeless=not failure.again,
            )
            self.failures += 1
        return self.down

    def worked(self, now: datetime, seen: int) -> Down | None:
        """Something was shown; what is down still: a success that began before the last failure proves nothing."""
        self.worked_at = now
        if seen == self.failures:
            self.down = None
        return self.down


def pause(failure: ChannelFailed, attempts: int) -> timedelta:
    """How long to wait after so many failures."""
    if failure.after is not None and not math.isnan(failure.after):
        return timedelta(seconds=min(max(failure.after, 0.0), LONGEST_ASKED))
    if not failure.again:
        return timedelta(seconds=LONGEST_PAUSE)
    return timedelta(seconds=min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(attempts - 1, 10)))


def active_channels(routes: Sequence[Route]) -> dict[str, ActiveChannel]:
    """The routes by name, each with its backup; raises `WrongUse` for what does not fit together."""
    active: dict[str, ActiveChannel] = {}
    for route in routes:
        if route.name in active:
            raise WrongUse(f"two channels are called {route.name!r}")
        if route.backup_for == route.name:
            raise WrongUse(f"channel {route.name!r} cannot be its own backup")
        active[route.name] = ActiveChannel(route)
    for one in active.values():
        main = active.get(one.route.backup_for)
        if main is None:
            continue
        if main.backup:
            raise WrongUse(f"channels {main.backup!r} and {one.name!r} are both backups for {main.name!r}: name one")
        main.backup = one.name
    if active and all(one.route.backup_for in active for one in active.values()):
        raise WrongUse("every channel is the backup of another, so none would be used first")
    return active
