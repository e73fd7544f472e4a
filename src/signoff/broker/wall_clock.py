"""The wall clock behind the `Clock` port."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from signoff.ports import Clock, Store

LONGEST = 60.0
"""Seconds until a sleeper reads the clock again: it may have been set in the meantime."""


async def pause_for(clock: Clock, span: timedelta) -> None:
    """Sleep for a time span. With a real clock, changes of the wall clock do not matter."""
    if isinstance(clock, SystemClock | AgreedClock):
        await clock.sleep(span)
    else:
        await clock.sleep_until(clock.now() + span)


class SystemClock:
    """Real time, in UTC."""

    def now(self) -> datetime:
        return datetime.now(UTC)

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
