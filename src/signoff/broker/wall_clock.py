"""The wall clock behind the `Clock` port."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from signoff.ports import Clock, Store

LONGEST = 60.0
"""Seconds until a sleeper looks at the clock again: it may have been set meanwhile."""


async def pause_for(clock: Clock, span: timedelta) -> None:
    """Let so much time pass. Where time is real, whatever is done to the clock on the wall meanwhile."""
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
        """Let so much time pass, evenly."""
        import asyncio

        await asyncio.sleep(span.total_seconds())


class AgreedClock:
    """A clock set by that of the store, so that everybody who uses the store settles deadlines by one time."""

    def __init__(self, clock: Clock, store: Store) -> None:
        self._clock = clock
        self._store = store

    def now(self) -> datetime:
        return self._clock.now() + self._lead

    async def sleep_until(self, moment: datetime) -> None:
        await self._clock.sleep_until(moment - self._lead)

    async def sleep(self, span: timedelta) -> None:
        """As that of the clock that is set."""
        await pause_for(self._clock, span)

    @property
    def _lead(self) -> timedelta:
        return self._store.clock_lead or timedelta(0)
