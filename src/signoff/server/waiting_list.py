"""The list of waiting requests for the inbox page: grouped by run, in parts. Every text in it is safe to show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from signoff.broker import Broker
from signoff.core.people import Actor, person_key
from signoff.core.request_filter import RequestFilter
from signoff.ports import Transaction
from signoff.server.list_cursor import place_after
from signoff.server.state import ServerState
from signoff.views.inbox_view import InboxFilter, Me, RequestPage, RequestRow, rows_of, still_open
from signoff.views.namesakes import namesakes, run_of

PART = 100
"""Rows that are rendered at once."""
MOST_LOOKED_AT = 500
"""At most about how many requests are looked at for one page, to find those for one person."""
MOST_COUNTED = 99_999
"""Above this, the page says that there are more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunGroup:
    """Requests of one run."""

    run: str
    """Its id; empty for requests without a saved run."""
    task: str
    worker: str
    session: str
    """The session of an agent in another program, and its directory."""
    rows: tuple[RequestRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitingList:
    """A part of the list."""

    page: RequestPage
    others: frozenset[str] = frozenset()
    """Ids of rows that the page's filter leaves out: they are shown only where they stand already."""

    @property
    def count(self) -> int:
        """How many wait in all, counted up to `MOST_COUNTED`."""
        return min(self.page.waiting, MOST_COUNTED)

    @property
    def more(self) -> bool:
        """Whether there are more than are counted."""
        return self.page.waiting > MOST_COUNTED

    @property
    def groups(self) -> Sequence[RunGroup]:
        """Rows by run, in the order of the oldest; those without a run by worker, and by session and task."""
        by_run: dict[tuple[str, ...], list[RequestRow]] = {}
        for row in self.page.requests:
            by_run.setdefault(run_of(row.run, row.worker, row.session, row.task), []).append(row)
        return [
            RunGroup(
                run=run_id,
                task=next((one.task for one in inside if one.task), ""),
                worker=inside[0].worker,
                session=inside[0].session,
                rows=tuple(inside),
            )
            for (run_id, *_), inside in by_run.items()
        ]


def inbox_filter(
    state: ServerState,
    by: Actor,
    *,
    mine: bool,
    chosen: RequestFilter | None = None,
    after: str | None = "",
    limit: int = PART,
) -> InboxFilter:
    """Return which part of the inbox a person wants to see; with `mine`, only requests that they may answer."""
    roles = {person_key(one.name): one.roles for one in state.people().values()}
    me = Me(by.name, roles.get(by.key, frozenset())) if mine else None
    return InboxFilter(
        limit=limit,
        chosen=chosen or RequestFilter(),
        me=me,
        roles=roles,
        after=place_after(after),
        looks=MOST_LOOKED_AT,
    )


async def waiting_list(broker: Broker, chosen: InboxFilter) -> WaitingList:
    """Return the oldest waiting requests, as `signoff inbox` lists them."""
    return WaitingList(page=await chosen.page_by(broker))


async def waiting_rows(broker: Broker, ids: Sequence[str], chosen: InboxFilter) -> WaitingList:
    """Return those of some requests that still wait, in the order of the list."""

    def work(tx: Transaction) -> WaitingList:
        items = [item for one in ids if (item := still_open(tx, one)) is not None]
        items += namesakes(tx, items)
        page, others = rows_of(tx, broker.clock.now(), chosen, items, broker.people.shortage)
        return WaitingList(page=page, others=others)

    await broker.sweep()
    return await broker.store.read(work)
