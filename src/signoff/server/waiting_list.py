"""The list of waiting requests for the inbox page: grouped by run, in parts. Every text in it is safe to show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from signoff.broker import Broker
from signoff.core.comment import unanswered
from signoff.core.inbox_row import Item, place_of
from signoff.core.lifecycle import OPEN
from signoff.core.quorum import approvers
from signoff.core.request import ApprovalRequest, State
from signoff.core.request_context import shortened
from signoff.core.safe_text import kept_text, safe_text
from signoff.core.visible_text import visible
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
        before = tx.requests.get(after) if after else None
        start = place_of(before) if before is not None else None
        items = tx.queue.page(limit=part + 1, after=start)
        shown, count = items[:part], tx.listings.waiting(most=MOST_COUNTED + 1)
        return WaitingList(
            groups=tuple(_groups(tx, shown)),
            count=min(count, MOST_COUNTED),
            more=count > MOST_COUNTED,
            last=shown[-1].id if len(items) > len(shown) else "",
        )

    await broker.sweep()
    return await broker.store.read(work)


async def waiting_rows(broker: Broker, ids: Sequence[str]) -> WaitingList:
    """Return those of some requests that still wait, in the order of the list."""

    def work(tx: Transaction) -> WaitingList:
        found = (tx.requests.get(one) for one in ids)
        items = [_item(one) for one in found if one is not None and one.state in OPEN]
        count = tx.listings.waiting(most=MOST_COUNTED + 1)
        return WaitingList(
            groups=tuple(_groups(tx, sorted(items, key=lambda one: (one.opened_at, one.id)))),
            count=min(count, MOST_COUNTED),
            more=count > MOST_COUNTED,
            last="",
        )

    await broker.sweep()
    return await broker.store.read(work)


def _groups(tx: Transaction, items: Sequence[Item]) -> list[RunGroup]:
    """Group by run, in the order of the oldest request; requests without a run are grouped by worker."""
    by_run: dict[tuple[str, str], list[Item]] = {}
    for item in items:
        by_run.setdefault((item.run, "" if item.run else item.worker), []).append(item)
    found: list[RunGroup] = []
    for (run_id, worker), rows in by_run.items():
        run = tx.runs.get(run_id) if run_id else None
        task = shortened(" ".join(run.prompt.split()), _LONGEST_TASK) if run is not None else ""
        found.append(
            RunGroup(
                run=visible(run_id),
                task=safe_text(task),
                worker=visible(worker or rows[0].worker),
                rows=tuple(_row(tx, one) for one in rows),
            )
        )
    return found


def _row(tx: Transaction, item: Item) -> ListRow:
    return ListRow(
        id=item.id,
        title=kept_text(item.title),
        tool=safe_text(item.tool),
        worker=visible(item.worker),
        role=visible(item.role),
        quorum=item.quorum,
        votes=_agreed(tx, item),
        assigned=visible(item.assigned),
        opened_at=item.opened_at,
        deadline=item.deadline,
        escalated=item.escalated,
        is_unknown=item.state is State.UNKNOWN,
        questions=len(unanswered(tx.comments.of(item.id))),
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
