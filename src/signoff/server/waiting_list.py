"""The list of waiting requests for the inbox page: grouped by run, in parts. Every text in it is safe to show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from signoff.broker import Broker
from signoff.core.inbox_row import NOWHERE, Item, place_of, unread_item
from signoff.core.lifecycle import OPEN
from signoff.core.people import Actor, person_key
from signoff.core.request import ApprovalRequest, State
from signoff.core.safe_text import kept_text, safe_text
from signoff.core.visible_text import visible
from signoff.errors import StoreDamaged
from signoff.ports import Transaction
from signoff.reports.inbox_report import Me, View, page_of, rows_of
from signoff.reports.namesakes import namesakes, run_of
from signoff.server.state import ServerState

PART = 100
"""Rows that are rendered at once."""
MOST_LOOKED_AT = 500
"""At most about how many requests are looked at for one page, to find those for one person."""
MOST_COUNTED = 99_999
"""Above this, the page says that there are more."""


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
    is_short: bool
    """Whether too few people may approve it."""
    is_unknown: bool
    questions: int
    """The number of unanswered questions."""
    apart: str = ""
    """What tells it from others of its run with the same title."""
    is_damaged: bool = False
    """Whether its row in the store cannot be read: its title says so."""
    is_other: bool = False
    """Whether the page's filter leaves it out: it is shown only where it stands already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunGroup:
    """Requests of one run."""

    run: str
    """Its id; empty for requests without a saved run."""
    task: str
    worker: str
    session: str
    """The session of an agent in another program, and its directory."""
    rows: tuple[ListRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingList:
    """A part of the list."""

    groups: tuple[RunGroup, ...]
    count: int
    """How many wait in all, counted up to `MOST_COUNTED`."""
    more: bool
    """Whether there are more than are counted."""
    last: str
    """Id of the last request that was looked at, if there are others after it: the next part starts after it."""

    @property
    def rows(self) -> list[ListRow]:
        return [row for group in self.groups for row in group.rows]


def inbox_view(
    state: ServerState, by: Actor, *, mine: bool, text: str = "", after: str = "", limit: int = PART
) -> View:
    """Return which part of the inbox a person wants to see; with `mine`, only requests that they may answer."""
    roles = {person_key(one.name): one.roles for one in state.people().values()}
    me = Me(by.name, roles.get(by.key, frozenset())) if mine else None
    return View(limit, me, roles, after, looks=MOST_LOOKED_AT, text=text)


async def waiting_list(broker: Broker, view: View) -> WaitingList:
    """Return the oldest waiting requests, as `signoff inbox` lists them."""

    def work(tx: Transaction) -> WaitingList:
        page = page_of(tx, broker.clock.now(), view, broker.people.shortage)
        return _listed(tx, page.items, last=page.last)

    await broker.sweep()
    return await broker.store.read(work)


async def waiting_rows(broker: Broker, ids: Sequence[str], view: View) -> WaitingList:
    """Return those of some requests that still wait, in the order of the list."""

    def work(tx: Transaction) -> WaitingList:
        items = [item for one in ids if (item := _still_open(tx, one)) is not None]
        items += namesakes(tx, items)
        items.sort(key=lambda one: (one.opened_at, one.id))
        rows, chosen = rows_of(tx, broker.clock.now(), view, items, broker.people.shortage)
        return _listed(tx, rows, others=frozenset(one.id for one in rows) - chosen)

    await broker.sweep()
    return await broker.store.read(work)


def _listed(
    tx: Transaction, items: Sequence[Item], *, last: str = "", others: frozenset[str] = frozenset()
) -> WaitingList:
    count = tx.listings.waiting(most=MOST_COUNTED + 1)
    return WaitingList(
        groups=tuple(_groups(items, others)),
        count=min(count, MOST_COUNTED),
        more=count > MOST_COUNTED,
        last=last,
    )


def _still_open(tx: Transaction, request_id: str) -> Item | None:
    """Return the row of a request that waits; None if it does not."""
    try:
        request = tx.requests.get(request_id)
    except StoreDamaged as wrong:
        return unread_item(request_id, NOWHERE).broken(wrong)
    return _item(request) if request is not None and request.state in OPEN else None


def _groups(items: Sequence[Item], others: frozenset[str]) -> list[RunGroup]:
    """Group by run, in the order of the oldest request; requests without a run by worker, and by session and task."""
    by_run: dict[tuple[str, ...], list[Item]] = {}
    for item in items:
        by_run.setdefault(run_of(item), []).append(item)
    return [
        RunGroup(
            run=visible(run_id),
            task=next((one.task for one in inside if one.task), ""),
            worker=visible(inside[0].worker),
            session=inside[0].session,
            rows=tuple(_row(one, is_other=one.id in others) for one in inside),
        )
        for (run_id, *_), inside in by_run.items()
    ]


def _row(item: Item, *, is_other: bool) -> ListRow:
    return ListRow(
        apart=item.apart,
        id=item.id,
        title=kept_text(item.title),
        tool=safe_text(item.tool),
        worker=visible(item.worker),
        role=visible(item.role),
        quorum=item.quorum,
        votes=item.votes,
        assigned=visible(item.assigned),
        opened_at=item.opened_at,
        deadline=item.deadline,
        escalated=item.escalated,
        is_short=item.is_short,
        is_unknown=item.state is State.UNKNOWN,
        questions=item.questions,
        is_damaged=bool(item.damaged),
        is_other=is_other,
    )


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
