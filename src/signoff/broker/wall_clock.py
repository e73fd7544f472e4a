"""The wall clock behind the `Clock` port."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

from signoff.ports import Clock, Store


class SystemClock:
    """Real time, in UTC."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def sleep_until(self, moment: datetime) -> None:
        while (left := (moment - self.now()).total_seconds()) > 0:
            await asyncio.sleep(left)


class AgreedClock:
    """A clock set by that of the store, so that everybody who uses the store settles deadlines by one time."""

    def __init__(self, clock: Clock, store: Store) -> None:
        self._clock = clock
        self._store = store

    def now(self) -> datetime:
        return self._clock.now() + self._lead

    async def sleep_until(self, moment: datetime) -> None:
        await self._clock.sleep_until(moment - self._lead)

    @property
    def _lead(self) -> timedelta:
        return self._store.clock_lead or timedelta(0)
