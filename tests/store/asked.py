"""The SQL of what is asked often: tests look at how the databases go about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from signoff.core.inbox_row import unread_item
from signoff.core.request_filter import ListPlace, ListState, RequestFilter
from signoff.core.subject import Subject, SubjectKind
from signoff.errors import StoreDamaged
from signoff.store.dialect import Dialect
from signoff.store.record_table import Chain
from signoff.store.tables import Row, Sql
from signoff.store.transaction import Transaction

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ASKED: dict[str, Callable[[Transaction], object]] = {
    "request": lambda tx: tx.requests.get("r"),
    "about": lambda tx: tx.requests.about("k"),
    "open_requests": lambda tx: tx.queue.open(limit=9),
    "inbox": lambda tx: tx.queue.page(limit=9),
    "inbox_after": lambda tx: tx.queue.page(limit=9, after=unread_item("r", NOON)),
    "requests_of_conversation": lambda tx: tx.requests.of(conversation_id="c"),
    "requests_of_run": lambda tx: tx.requests.of(run="r"),
    "asked_at_in_run": lambda tx: tx.requests.opened_at(NOON, run="r"),
    "asked_at_in_conversation": lambda tx: tx.requests.opened_at(NOON, conversation_id="c"),
    "waiting_of_run": lambda tx: tx.requests.waiting_of("r", limit=0),
    "answered_of_run": lambda tx: tx.past.answered_of("r"),
    "listed_waiting": lambda tx: tx.listings.page(RequestFilter(), limit=9, after=ListPlace(NOON, "r")),
    "listed_settled": lambda tx: tx.listings.page(RequestFilter(state=ListState.SETTLED), limit=9),
    "listed_all_of_run": lambda tx: tx.listings.page(RequestFilter(state=ListState.ALL, run="r"), limit=9),
    "requests_like": lambda tx: tx.requests.like("r"),
    "runs_like": lambda tx: tx.runs.like("r"),
    "due": lambda tx: tx.queue.due(NOON),
    "claimed": lambda tx: tx.queue.claimed(),
    "recent": lambda tx: tx.past.recent(limit=9),
    "drop_results": lambda tx: tx.results.drop("r"),
    "grants_about": lambda tx: tx.grants.about("t", "k"),
    "runs_going": lambda tx: tx.runs.all(going=True, limit=9),
    "delivery": lambda tx: tx.deliveries.get("c", Subject(SubjectKind.REQUEST, "r")),
    "live_deliveries": lambda tx: tx.deliveries.find(live=True, channel="c"),
    "deliveries_of_trail": lambda tx: tx.deliveries.find(trail="t", channel="c"),
    "live_deliveries_of_trail": lambda tx: tx.deliveries.find(trail="t", channel="c", live=True),
    "last_deliveries": lambda tx: tx.deliveries.last(trail="t", channel="c", limit=9),
    "deliveries_of_request": lambda tx: tx.deliveries.find(request="r", trail="t", channel="c", live=True),
    "changed_trails": lambda tx: tx.deliveries.changes(after=0),
    "lease": lambda tx: tx.leases.get("c"),
    "conversation": lambda tx: tx.conversations.get("c"),
    "segments": lambda tx: tx.segments.chain("t"),
    "entries": lambda tx: tx.record.entries(),
    "entries_of_request": lambda tx: tx.record.entries(request="r"),
    "entries_of_run": lambda tx: tx.record.entries(run="r"),
    "touched": lambda tx: tx.record.touched(3),
}


class _Listening:
    """Hears what is asked, and always gives the same answer."""

    def __init__(self, answer: Sequence[Row]) -> None:
        self.asked: list[str] = []
        self._answer = answer

    def rows(self, sql: str, values: Sequence[Any] = ()) -> Sequence[Row]:
        self.run(sql)
        return self._answer

    def run(self, sql: str, values: Sequence[Any] = ()) -> None:
        self.asked.append(sql)


def sql_of(name: str, dialect: Dialect) -> list[str]:
    """What is sent, whether nothing is found or something."""
    asked = list[str]()
    for answer in ([], [(7, "")]):
        wire = _Listening(answer)
        sql = Sql(wire, dialect)
        with suppress(StoreDamaged, LookupError, TypeError, ValueError):  # it is no answer to most
            ASKED[name](Transaction(sql, Chain(sql)))
        asked += wire.asked
    return list(dict.fromkeys(asked))
