"""Requests of one run with the same title: which there are, and what tells them apart in a list."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from signoff.core.inbox_row import Item
from signoff.core.request import ApprovalRequest
from signoff.core.request_filter import RequestFilter
from signoff.errors import StoreDamaged
from signoff.ports import Transaction

MOST = 20
"""At most this many requests of a run with the same title are told apart."""
SEEN = 90
"""Characters of a title that a row has room for."""


def told_apart(tx: Transaction, items: Sequence[Item]) -> Sequence[Item]:
    """Return the items with what tells them apart from others among them; whatever cannot be told is left out."""
    by_title: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for item in items:
        if not item.damaged:
            by_title[*run_of(item.run, item.worker, item.session, item.task), item.title[:SEEN]].append(item.id)
    found: dict[str, str] = {}
    for ids in by_title.values():
        if 1 < len(ids) <= MOST:
            from signoff.core.differences import differences  # masking is slow to import, and few lists need it

            requests = [one for id in ids if (one := _readable(tx, id)) is not None]
            found |= zip((one.id for one in requests), differences(requests), strict=True)
    return [replace(one, apart=found[one.id]) if found.get(one.id) else one for one in items]


def namesakes(tx: Transaction, items: Sequence[Item]) -> list[Item]:
    """Return what else waits in the same runs with the same titles: there, too, it has to be said what differs."""
    titles, known = {(one.run, one.title[:SEEN]) for one in items if one.run}, {one.id for one in items}
    waiting = (
        one for run in {run for run, _ in titles} for one in tx.listings.page(RequestFilter(run=run), limit=MOST)
    )
    return [one for one in waiting if (one.run, one.title[:SEEN]) in titles and one.id not in known]


def run_of(run: str, worker: str, session: str, task: str) -> tuple[str, ...]:
    """Return what stands together in a list: a run; without one a worker's calls by session and task."""
    return (run,) if run else ("", worker, session, task if session else "")


def _readable(tx: Transaction, request_id: str) -> ApprovalRequest | None:
    with suppress(StoreDamaged):
        return tx.requests.get(request_id)
    return None
