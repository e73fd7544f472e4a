"""A clock you turn."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta


class FakeClock:
    """Time that moves when you say so."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, 12, tzinfo=UTC)) -> None:
        self._now = start
        self._sleepers: list[tuple[datetime, asyncio.Event]] = []

    def now(self) -> datetime:
        return self._now

    async def sleep_until(self, moment: datetime) -> None:
        if moment > self._now:
            woken = asyncio.Event()
            self._sleepers.append((moment, woken))
            await woken.wait()

    def advance(self, by: timedelta | float) -> None:
        """Move the time forward, and wake everything that slept until then."""
        self._now += by if isinstance(by, timedelta) else timedelta(seconds=by)
        due = [sleeper for sleeper in self._sleepers if sleeper[0] <= self._now]
        self._sleepers = [sleeper for sleeper in self._sleepers if sleeper[0] > self._now]
        for _, woken in due:
            woken.set()
