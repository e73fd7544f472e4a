"""Follow the audit log to count decisions, measure the time to them, and tell what time did to requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple, cast

from signoff.broker import Broker
from signoff.core.audit_text import event_body
from signoff.core.request import ApprovalRequest, State
from signoff.errors import StoreError
from signoff.ports import Transaction
from signoff.server.meters import Meters
from signoff.store_changes import changes

AT_ONCE = 500
"""Events that are read at once."""
PAUSE = 1.0
"""Minimal seconds between two reads."""


class TimePassed(NamedTuple):
    """A request that nobody answered in time."""

    request: ApprovalRequest
    escalated_to: str
    """Who is asked from now on; empty if it expired."""


class _Settled(NamedTuple):
    state: str
    seconds: float


async def count_decisions(broker: Broker, meters: Meters, tell: Callable[[TimePassed], None], after: int) -> None:
    """Count requests that are settled after this event, by any process, until cancelled.

    `tell` is called for each that expires or is escalated, once.
    """
    seen = after
    with changes(broker.store.watch) as news:
        while True:
            news.clear()
            try:
                more = True
                while more:
                    found, seen, more = await broker.store.read(partial(_news, after=seen))
                    for one in found:
                        if isinstance(one, TimePassed):
                            tell(one)
                        else:
                            meters.decided[one.state] += 1
                            meters.time_to_decision.add(one.seconds)
            except StoreError:
                meters.store_errors += 1
            await asyncio.sleep(PAUSE)
            await news.wait()


def _news(tx: Transaction, after: int) -> tuple[Sequence[_Settled | TimePassed], int, bool]:
    """Return what was settled, expired or escalated after this event."""
    entries = tx.record.entries(after=after, limit=AT_ONCE)
    found: list[_Settled | TimePassed] = []
    for entry in entries:
        if entry.kind in ("settled", "escalated") and entry.request:
            request, body = tx.requests.get(entry.request), event_body(entry.body)
            said = cast("dict[str, object]", body) if isinstance(body, dict) else {}
            state = str(said.get("state", ""))
            if entry.kind == "settled":
                opened = request.opened_at if request is not None else None
                seconds = _seconds(opened, datetime.fromisoformat(entry.at))
                found.append(_Settled(state if state in _STATES else "other", seconds))
            if request is not None and (entry.kind == "escalated" or state == State.EXPIRED):
                found.append(TimePassed(request, str(said.get("needs", ""))))
    return found, entries[-1].seq if entries else after, len(entries) == AT_ONCE


_STATES = frozenset(map(str, State))


def _seconds(since: datetime | None, until: datetime) -> float:
    return max(0.0, (until - since).total_seconds()) if since is not None else 0.0
