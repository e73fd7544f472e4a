"""Data for the history pages: runs with their timelines, and settled requests. Every text is safe to show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from signoff.broker import Broker
from signoff.broker.run_status import RunStatus
from signoff.broker.timeline import Moment, run_history
from signoff.core.moment import in_utc
from signoff.core.request import ApprovalRequest
from signoff.core.request_filter import ListPlace, ListState, RequestFilter
from signoff.core.request_status import status_of
from signoff.core.result_text import exit_code
from signoff.core.run import RunState
from signoff.core.safe_text import kept_text, safe_text
from signoff.core.visible_text import visible
from signoff.ports import Transaction
from signoff.reports.request_sheet import changes
from signoff.reports.run_report import RunsView, name_of, runs_page
from signoff.server.request_outcome import RequestOutcome, outcome_of

PAGE = 50
MOST_LOOKED_AT = 2_000
"""The newest requests that insights are computed from."""
MOST_MOMENTS = 500
MOST_REQUESTS = 100
"""How many requests the page of a run lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRow:
    """A settled request."""

    id: str
    title: str
    tool: str
    worker: str
    run: str
    outcome: RequestOutcome
    opened_at: datetime | None
    at: datetime | None
    edited: bool
    changes: tuple[str, ...] = ()
    """What a person changed in the arguments that ran, one line each."""
    exit_code: int | None = None
    """Of a command that failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastPage:
    """A page of settled requests, and the id that the next page starts after; empty on the last page."""

    rows: tuple[PastRow, ...]
    next: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A run in a list."""

    id: str
    agent: str
    task: str
    word: str
    requester: str
    waiting: int
    started_at: datetime | None
    changed_at: datetime | None
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAccount:
    """One run with everything about it."""

    row: RunRow
    moments: Sequence[Moment]
    left_out: int
    """How many earlier moments are left out."""
    requests: tuple[PastRow, ...]
    """The newest, the oldest of them first."""
    has_more: bool
    """Whether there are earlier requests."""
    is_over: bool
    loosened: tuple[str, ...]


async def history_page(broker: Broker, words: str, after: str) -> PastPage:
    """Return settled requests whose title, tool or workers contain these words, newest first."""

    def work(tx: Transaction) -> PastPage:
        before = tx.requests.get(after) if after else None
        place = ListPlace(before.opened_at, before.id) if before is not None and before.opened_at is not None else None
        chosen = RequestFilter(state=ListState.SETTLED, text=words.strip())
        items = tx.listings.page(chosen, limit=PAGE + 1, after=place)
        found = (tx.requests.get(one.id) for one in items[:PAGE])
        rows = tuple(_past_row(one) for one in found if one is not None)
        return PastPage(rows=rows, next=items[PAGE - 1].id if len(items) > PAGE else "")

    return await broker.store.read(work)


async def past_requests(broker: Broker) -> Sequence[ApprovalRequest]:
    """Return the newest requests, settled or not, for insights."""

    def work(tx: Transaction) -> list[ApprovalRequest]:
        return [*tx.past.recent(limit=MOST_LOOKED_AT), *tx.queue.open(limit=MOST_LOOKED_AT)]

    return await broker.store.read(work)


async def run_rows(broker: Broker, view: RunsView) -> tuple[tuple[RunRow, ...], str]:
    """List runs, newest first; return the id that the next page starts after, too: empty on the last page."""
    await broker.sweep()
    page = await runs_page(broker, view)
    return tuple(map(_run_row, page.runs)), page.last


async def run_page(broker: Broker, prefix: str) -> RunAccount:
    """Return one run with its timeline and requests. Raises `UnknownRun`."""
    history = await run_history(broker, prefix, in_utc, most=MOST_MOMENTS)
    run = history.status.run
    chosen = RequestFilter(state=ListState.ALL, run=run.id)

    def work(tx: Transaction) -> list[ApprovalRequest]:
        newest = tx.listings.page(chosen, limit=MOST_REQUESTS + 1)
        return [found for one in reversed(newest) if (found := tx.requests.get(one.id)) is not None]

    requests = await broker.store.read(work)
    return RunAccount(
        row=_run_row(history.status),
        moments=history.moments,
        left_out=history.earlier,
        requests=tuple(map(_past_row, requests[-MOST_REQUESTS:])),
        has_more=len(requests) > MOST_REQUESTS,
        is_over=run.state is not RunState.GOING,
        loosened=tuple(map(safe_text, run.setup.loosened.texts)),
    )


def _run_row(status: RunStatus) -> RunRow:
    run = status.run
    return RunRow(
        id=run.id,
        agent=safe_text(name_of(run)),
        task=safe_text(" ".join(run.prompt.split())),
        word=status.word,
        requester=visible(run.requester),
        waiting=status.waits,
        started_at=run.started_at,
        changed_at=run.changed_at,
        detail=kept_text(run.detail, lines=True),
    )


def _past_row(request: ApprovalRequest) -> PastRow:
    status = status_of(request)
    return PastRow(
        id=request.id,
        title=kept_text(request.title),
        tool=safe_text(request.tool_name),
        worker=visible(" > ".join(request.worker)),
        run=visible(request.run),
        outcome=outcome_of(request),
        opened_at=request.opened_at,
        at=status.at,
        edited=status.edited,
        changes=tuple(changes(request, request.other_args)) if request.other_args is not None else (),
        exit_code=exit_code(status.result),
    )
