"""Follow the audit log to count decisions and measure the time to them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import cast

from signoff.broker import Broker
from signoff.core.audit_text import event_body
from signoff.core.request import State
from signoff.errors import StoreError
from signoff.ports import Transaction
from signoff.server.meters import Meters
from signoff.store_changes import changes

AT_ONCE = 500
"""Events that are read at once."""
PAUSE = 1.0
"""Minimal seconds between two reads."""


async def count_decisions(broker: Broker, meters: Meters) -> None:
    """Count requests that are settled from now on, by any process, until cancelled."""
    seen = -1
    with changes(broker.store.watch) as news:
        while True:
            news.clear()
            try:
                if seen < 0:
                    seen = await broker.store.read(lambda tx: tx.record.head()[0])
                more = True
                while more:
                    settled, seen, more = await broker.store.read(partial(_settled, after=seen))
                    for state, seconds in settled:
                        meters.decided[state] += 1
                        meters.time_to_decision.add(seconds)
            except StoreError:
                meters.store_errors += 1
            await asyncio.sleep(PAUSE)
            await news.wait()


def _settled(tx: Transaction, after: int) -> tuple[Sequence[tuple[str, float]], int, bool]:
    """Return the state and the seconds of what was settled after this event."""
    entries = tx.record.entries(after=after, limit=AT_ONCE)
    found: list[tuple[str, float]] = []
    for entry in entries:
        if entry.kind == "settled" and entry.request:
            request = tx.requests.get(entry.request)
            body = event_body(entry.body)
            word = str(cast("dict[str, object]", body).get("state", "")) if isinstance(body, dict) else ""
            opened = request.opened_at if request is not None else None
            at = datetime.fromisoformat(entry.at)
            found.append((word if word in _STATES else "other", _seconds(opened, at)))
    return found, entries[-1].seq if entries else after, len(entries) == AT_ONCE


_STATES = frozenset(map(str, State))


def _seconds(since: datetime | None, until: datetime) -> float:
    return max(0.0, (until - since).total_seconds()) if since is not None else 0.0
