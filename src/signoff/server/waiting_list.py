"""The list of waiting requests for the inbox page: grouped by run, in parts. Every text in it is safe to show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from signoff.broker import Broker
from signoff.core.comment import unanswered
from signoff.core.inbox_row import NOWHERE, Item, place_of, unread_item
from signoff.core.lifecycle import OPEN
from signoff.core.quorum import approvers
from signoff.core.request import ApprovalRequest, State
from signoff.core.request_context import shortened
from signoff.core.safe_text import kept_text, safe_text
from signoff.core.visible_text import visible
from signoff.errors import StoreDamaged
from signoff.ports import Transaction

PART = 100
"""Rows that are rendered at once."""
MOST_COUNTED = 99_999
"""Above this, the page says that there are more."""
_LONGEST_TASK = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRow:
    """One request in the list."""

    id: str
    title: str
    tool: str
    worker: str
    role: str
    quorum: int
    votes: int
    """How many valid approvals there are of what is on the card."""
    assigned: str
    opened_at: datetime
    deadline: datetime | None
    escalated: bool
    is_unknown: bool
    questions: int
    """The number of unanswered questions."""
    is_damaged: bool = False
    """Whether its row in the store cannot be read: its title says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunGroup:
    """Requests of one run."""

    run: str
    """Its id; empty for requests without a saved run."""
    task: str
    worker: str
    rows: tuple[ListRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingList:
    """A part of the list."""

    groups: tuple[RunGroup, ...]
    count: int
    """How many wait, counted up to `MOST_COUNTED`."""
    more: bool
    """Whether there are more than are counted."""
    last: str
    """Id of the last row if there are rows after it: the next part starts after it."""

    @property
    def rows(self) -> list[ListRow]:
        return [row for group in self.groups for row in group.rows]


async def waiting_list(broker: Broker, after: str = "", *, part: int = PART) -> WaitingList:
    """Return the oldest waiting requests, or those after a request."""

    def work(tx: Transaction) -> WaitingList:
        start = tx.queue.place(after) if after else None
        items = tx.queue.page(limit=part + 1, after=start)
        shown, count = items[:part], tx.listings.waiting(most=MOST_COUNTED + 1)
        rows = {one.id: _row(tx, one) for one in shown}
        return WaitingList(
            groups=tuple(_groups(tx, shown, rows)),
            count=min(count, MOST_COUNTED),
            more=count > MOST_COUNTED,
            last=shown[-1].id if len(items) > len(shown) else "",
        )

    await broker.sweep()
    return await broker.store.read(work)


async def waiting_rows(broker: Broker, ids: Sequence[str]) -> WaitingList:
    """Return those of some requests that still wait, in the order of the list."""

    def work(tx: Transaction) -> WaitingList:
        items = [item for one in ids if (item := _still_open(tx, one)) is not None]
        count = tx.listings.waiting(most=MOST_COUNTED + 1)
        return WaitingList(
            groups=tuple(
                _groups(
                    tx,
                    sorted(items, key=lambda one: (one.opened_at, one.id)),
                    {one.id: _row(tx, one) for one in items},
                )
            ),
            count=min(count, MOST_COUNTED),
            more=count > MOST_COUNTED,
            last="",
        )

    await broker.sweep()
    return await broker.store.read(work)


def _still_open(tx: Transaction, request_id: str) -> Item | None:
    """Return the row of a request that waits; None if it does not."""
    try:
        request = tx.requests.get(request_id)
    except StoreDamaged as wrong:
        return unread_item(request_id, NOWHERE).broken(wrong)
    return _item(request) if request is not None and request.state in OPEN else None


def _groups(tx: Transaction, items: Sequence[Item], rows: Mapping[str, ListRow]) -> list[RunGroup]:
    """Group by run, in the order of the oldest request; requests without a run are grouped by worker."""
    by_run: dict[tuple[str, str], list[Item]] = {}
    for item in items:
        by_run.setdefault((item.run, "" if item.run else item.worker), []).append(item)
    found: list[RunGroup] = []
    for (run_id, worker), inside in by_run.items():
        task = ""
        with suppress(StoreDamaged):
            run = tx.runs.get(run_id) if run_id else None
            task = shortened(" ".join(run.prompt.split()), _LONGEST_TASK) if run is not None else ""
        found.append(
            RunGroup(
                run=visible(run_id),
                task=safe_text(task),
                worker=visible(worker or inside[0].worker),
                rows=tuple(rows[one.id] for one in inside),
            )
        )
    return found


def _row(tx: Transaction, item: Item) -> ListRow:
    if not item.damaged:
        try:
            return _read(item, _agreed(tx, item), len(unanswered(tx.comments.of(item.id))))
        except StoreDamaged as wrong:
            item = item.broken(wrong)
    return _read(item, 0, 0)


def _read(item: Item, votes: int, questions: int) -> ListRow:
    return ListRow(
        id=item.id,
        title=kept_text(item.title),
        tool=safe_text(item.tool),
        worker=visible(item.worker),
        role=visible(item.role),
        quorum=item.quorum,
        votes=votes,
        assigned=visible(item.assigned),
        opened_at=item.opened_at,
        deadline=item.deadline,
        escalated=item.escalated,
        is_unknown=item.state is State.UNKNOWN,
        questions=questions,
        is_damaged=bool(item.damaged),
    )


def _agreed(tx: Transaction, item: Item) -> int:
    """Count valid votes: some are for other arguments, or for the role that was asked first."""
    request = tx.requests.get(item.id) if item.votes and item.quorum > 1 else None
    if request is None:
        return item.votes
    return len(approvers(request.requirement, request.votes, request.args_digest, request.parties))


def _item(request: ApprovalRequest) -> Item:
    return replace(
        place_of(request),
        state=request.state,
        title=request.title,
        tool=request.tool_name,
        worker=" > ".join(request.worker),
        run=request.run,
        role=request.requirement.role or "",
        quorum=request.requirement.quorum,
        votes=len(request.votes),
        assigned=request.assigned,
        deadline=request.deadline,
        escalated=request.escalated,
    )
