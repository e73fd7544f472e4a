"""Questions that a channel could not show in time: its timeout then counts from the question.

Whoever was shown a question has the channel's whole timeout, whenever that was. But a program that waits for an answer
does not wait for ever because a chat service is down.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from signoff.broker import Broker
from signoff.broker.ledger import Ledger
from signoff.broker.requests import put, readable
from signoff.core.lifecycle import Dated, may_be_dated
from signoff.ports import Transaction


async def end_overdue(broker: Broker, channel: str, timeout: timedelta) -> None:
    """Forever: let questions expire that nobody was shown within the timeout."""
    while True:
        await broker.clock.sleep_until(await date_overdue(broker, channel, timeout))


async def date_overdue(broker: Broker, channel: str, timeout: timedelta) -> datetime:
    """Let the questions expire that are overdue now. Return when the next one may be."""
    now = broker.clock.now()
    waiting = [one for one in await broker.pending() if may_be_dated(one) and one.opened_at is not None]
    due = {one.id: one.opened_at + timeout for one in waiting if one.opened_at is not None}
    late = [request_id for request_id, moment in due.items() if moment <= now]
    if late:
        ledger = broker.ledger
        await ledger.store.write("overdue", lambda tx: _dated(tx, ledger, late, channel, now))
    # A question that is asked from now on is due later than this.
    return min((moment for moment in due.values() if moment > now), default=now + timeout)


def _dated(tx: Transaction, ledger: Ledger, ids: list[str], channel: str, now: datetime) -> None:
    for request_id in ids:
        stored = readable(tx, request_id)
        if stored is None or not may_be_dated(stored):  # shown or settled meanwhile
            continue
        dated = put(tx, stored, Dated(now), now)
        told = {"deadline": now.isoformat(), "channel": channel}
        tx.record.append([ledger.journal.step(dated, "dated", now, **told)])
