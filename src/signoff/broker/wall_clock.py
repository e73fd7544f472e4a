"""The wall clock behind the `Clock` port."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from threading import Lock

from signoff.ports import Clock, Store
from signoff.processes import steady_seconds

LONGEST = 60.0
"""Seconds until a sleeper reads the clock again: it may have been set in the meantime."""

LEAST_JUMP = timedelta(seconds=1)
"""A clock that is set forward by less between two looks at it is corrected, and not set."""


async def pause_for(clock: Clock, span: timedelta) -> None:
    """Sleep for a time span. With a real clock, changes of the wall clock do not matter."""
    if isinstance(clock, SystemClock | AgreedClock):
        await clock.sleep(span)
    else:
        await clock.sleep_until(clock.now() + span)


class SystemClock:
    """Real time, in UTC."""

    def __init__(
        self, wall: Callable[[], datetime] = lambda: datetime.now(UTC), steady: Callable[[], float] = steady_seconds
    ) -> None:
        """`steady`: seconds that no change of the wall clock moves, and that pass while the machine is suspended."""
        self._wall = wall
        self._steady = steady
        self._ahead: float | None = None
        """Seconds from the steady clock to the wall clock."""
        self._jumps: list[tuple[datetime, timedelta]] = []
        """When the wall clock was set forward, by what it said until then, and by how much."""
        self._lock = Lock()

    def now(self) -> datetime:
        with self._lock:
            now = self._wall()
            before, self._ahead = self._ahead, now.timestamp() - self._steady()
            if before is not None and (jump := timedelta(seconds=self._ahead - before)) >= LEAST_JUMP:
                self._jumps.append((now - jump, jump))
            return now

    def set_forward(self, since: datetime) -> timedelta:
        """By how much the wall clock was set forward after a moment, as far as this process has seen it."""
        self.now()
        return sum((jump for before, jump in self._jumps if since <= before), timedelta(0))

    async def sleep_until(self, moment: datetime) -> None:
        import asyncio

        while (left := (moment - self.now()).total_seconds()) > 0:
            await asyncio.sleep(min(left, LONGEST))

    async def sleep(self, span: timedelta) -> None:
        """Sleep for a time span, by the monotonic clock of the event loop."""
        import asyncio

        await asyncio.sleep(span.total_seconds())


class AgreedClock:
    """A clock corrected to the store's clock, so that all processes on the store agree about deadlines."""

    def __init__(self, clock: Clock, store: Store) -> None:
        self._clock = clock
        self._store = store

    def now(self) -> datetime:
        return self._clock.now() + self._lead

    async def sleep_until(self, moment: datetime) -> None:
        while (left := moment - self.now()) > timedelta(0):
            await pause_for(self._clock, min(left, timedelta(seconds=LONGEST)))

    async def sleep(self, span: timedelta) -> None:
        """Sleep as the corrected clock does."""
        await pause_for(self._clock, span)

    @property
    def _lead(self) -> timedelta:
        return self._store.clock_lead or timedelta(0)
