"""Data for the history pages: runs with their requests, and settled requests. Every text is safe to show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from signoff.broker import Broker
from signoff.core.request import ApprovalRequest
from signoff.core.request_filter import ListPlace, ListState, RequestFilter
from signoff.ports import Transaction
from signoff.views.request_view import PastRequest
from signoff.views.run_view import RunHistoryView, run_history_view

PAGE = 50
MOST_LOOKED_AT = 2_000
"""The newest requests that insights are computed from."""
MOST_MOMENTS = 500
MOST_REQUESTS = 100
"""How many requests the page of a run lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastPage:
    """A page of settled requests, and the id that the next page starts after; empty on the last page."""

    rows: tuple[PastRequest, ...]
    next: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage:
    """One run with everything about it."""

    history: RunHistoryView
    requests: tuple[PastRequest, ...]
    """The newest, the oldest of them first."""
    has_more: bool
    """Whether there are earlier requests."""


async def history_page(broker: Broker, words: str, after: str) -> PastPage:
    """Return settled requests whose title, tool or workers contain these words, newest first."""

    def work(tx: Transaction) -> PastPage:
        before = tx.requests.get(after) if after else None
        place = ListPlace(before.opened_at, before.id) if before is not None and before.opened_at is not None else None
        chosen = RequestFilter(state=ListState.SETTLED, text=words.strip())
        items = tx.listings.page(chosen, limit=PAGE + 1, after=place)
        found = (tx.requests.get(one.id) for one in items[:PAGE])
        rows = tuple(PastRequest.of(one) for one in found if one is not None)
        return PastPage(rows=rows, next=items[PAGE - 1].id if len(items) > PAGE else "")

    return await broker.store.read(work)


async def past_requests(broker: Broker) -> Sequence[ApprovalRequest]:
    """Return the newest requests, settled or not, for insights."""

    def work(tx: Transaction) -> list[ApprovalRequest]:
        return [*tx.past.recent(limit=MOST_LOOKED_AT), *tx.queue.open(limit=MOST_LOOKED_AT)]

    return await broker.store.read(work)


async def run_page(broker: Broker, prefix: str) -> RunPage:
    """Return one run with its timeline and requests. Raises `UnknownRun`."""
    history = await run_history_view(broker, prefix, most=MOST_MOMENTS)
    chosen = RequestFilter(state=ListState.ALL, run=history.run.id)

    def work(tx: Transaction) -> list[ApprovalRequest]:
        newest = tx.listings.page(chosen, limit=MOST_REQUESTS + 1)
        return [found for one in reversed(newest) if (found := tx.requests.get(one.id)) is not None]

    requests = await broker.store.read(work)
    return RunPage(
        history=history,
        requests=tuple(map(PastRequest.of, requests[-MOST_REQUESTS:])),
        has_more=len(requests) > MOST_REQUESTS,
    )
