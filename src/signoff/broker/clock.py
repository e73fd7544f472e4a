"""The wall clock behind the `Clock` port."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime


class SystemClock:
    """Real time, in UTC."""

    def now(self) -> datetime:
        return datetime.now(UTC)

    async def sleep_until(self, moment: datetime) -> None:
        while (left := (moment - self.now()).total_seconds()) > 0:
            await asyncio.sleep(left)
