"""Calls with an unknown outcome: a person has to find out whether they ran, and report it."""

from __future__ import annotations

from collections.abc import Iterator

from signoff.broker.requests import readable
from signoff.core.inbox_row import Item
from signoff.core.request import ApprovalRequest, State
from signoff.ports import Transaction

PAGE = 1_000


def unknown_requests(tx: Transaction) -> list[ApprovalRequest]:
    """Return all of them, oldest first."""
    found = (readable(tx, item.id) for item in _inbox(tx) if item.state is State.UNKNOWN)
    return [request for request in found if request is not None]


def _inbox(tx: Transaction) -> Iterator[Item]:
    page = tx.queue.page(limit=PAGE)
    while page:
        yield from page
        page = tx.queue.page(limit=PAGE, after=page[-1]) if len(page) == PAGE else ()
