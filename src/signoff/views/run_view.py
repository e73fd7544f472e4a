"""Runs as people and programs see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from signoff.broker.run_status import MOST_NAMED, RunStatus, run_status
from signoff.broker.timeline import ModelUsage, Moment, run_history
from signoff.core.moment import in_utc
from signoff.core.request import State
from signoff.core.request_filter import has_text
from signoff.core.run import RunState, SavedRun
from signoff.core.safe_text import kept_text, safe_text
from signoff.core.visible_text import visible
from signoff.views.json_form import View

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.core.inbox_row import RunItem
    from signoff.ports import Transaction

GOING = "going"
ALL = "all"
_GOING = ("running", "waiting", "ready", "died")
_ENDED = ("done", "failed", "cancelled")
RUN_STATES = (GOING, ALL, *_GOING, *_ENDED, "damaged")
"""By what runs can be selected: all that have not ended, all, or one state."""
_BATCH = 200
LONGEST_TIMELINE = 5_000
"""How many events of a run a server sends at most."""
THIS_SERVER = "the server"
"""What resumes a run, in the answer of a server that does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest(View):
    """A request of a run."""

    id: str
    state: State
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView(View):
    """The status of a run."""

    id: str
    state: str
    """running, waiting, ready, died, done, failed, cancelled or damaged."""
    agent: str
    name: str
    """The name of the worker or agent, as people see it; empty if it has none."""
    prompt: str
    requester: str
    loosened: tuple[str, ...]
    started_at: datetime | None
    changed_at: datetime | None
    waiting: tuple[RunRequest, ...]
    """What it waits for: the oldest requests, at most 20."""
    waiting_count: int
    """How many requests it waits for."""
    answered: tuple[RunRequest, ...]
    """The oldest requests that are answered, but whose answer is not yet used, at most 20."""
    answered_count: int
    """How many answers are not yet used."""
    process: int | None
    """The process that executes it, if it is alive."""
    died: bool
    """Whether the process that executed it ended or stopped responding."""
    resumer: str = ""
    """What resumes it by itself, if it can continue; empty if nothing does, or if that was not looked up."""
    detail: str
    """How it ended: an error, or the beginning of its result."""

    @classmethod
    def of(cls, status: RunStatus, resumer: str = "") -> RunView:
        """A run as it stands now."""
        run, process = status.run, status.process
        return cls(
            id=visible(run.id),
            state=status.word,
            agent=visible(run.agent),
            name=safe_text(name_of(run)),
            prompt=safe_text(run.prompt, lines=True),
            requester=safe_text(run.requester),
            loosened=tuple(map(safe_text, run.setup.loosened.texts)),
            started_at=run.started_at,
            changed_at=run.changed_at,
            waiting=_requests(status.waiting),
            waiting_count=status.waits,
            answered=_requests(status.answered),
            answered_count=len(status.answered),
            process=process.pid if process is not None and status.alive else None,
            died=status.died,
            resumer=resumer,
            detail=kept_text(status.damaged or run.detail, lines=True),
        )

    @property
    def task(self) -> str:
        """Its prompt on one line."""
        return " ".join(self.prompt.split())

    @property
    def is_idle(self) -> bool:
        """Whether nobody executes it, although it has an answer or its process died."""
        return self.state in ("ready", "died") or self.died

    @property
    def can_resume(self) -> bool:
        """Whether it has its answers and is executed by nobody."""
        return self.state in ("ready", "died") and not self.waiting


def _requests(items: Sequence[RunItem]) -> tuple[RunRequest, ...]:
    named = items[:MOST_NAMED]
    return tuple(RunRequest(id=visible(one.id), state=one.state, title=kept_text(one.title)) for one in named)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunList(View):
    """A page of runs, the newest first."""

    runs: tuple[RunView, ...]
    halted: str
    """Why execution is halted; empty if it is not."""
    next: str | None
    """The `cursor` of the next page; null on the last page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHistoryView(View):
    """A run with its events."""

    run: RunView
    timeline: tuple[Moment, ...]
    """The oldest first."""
    earlier: int
    """How many earlier entries there are."""
    spent: ModelUsage


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFilter:
    """Which runs are listed. All given conditions must match."""

    limit: int
    state: str = GOING
    """One of `RUN_STATES`."""
    agent: str = ""
    """The name of the worker or agent, as the list shows it."""
    text: str = ""
    """Part of the id, the agent, the task, the requester, or of how it ended."""
    before: str = ""
    """The id of a run: only runs that began before it."""
    looks: int | None = None
    """At most about how many runs are looked at. None: all."""

    def has(self, run: SavedRun) -> bool:
        """Whether a run may be one of them, as far as its row says."""
        if self.state in _ENDED and run.state != self.state:
            return False
        if self.state in _GOING and run.state is not RunState.GOING:
            return False
        if self.agent and self.agent not in (run.agent, name_of(run)):
            return False
        return has_text(self.text, run.id, name_of(run), " ".join(run.prompt.split()), run.requester, run.detail)


def name_of(run: SavedRun) -> str:
    """The name of a run's worker or agent; empty if it has none."""
    return run.agent.removeprefix("worker:") or run.name


def _page(tx: Transaction, broker: Broker, chosen: RunFilter) -> tuple[list[RunStatus], str]:
    """Read runs, and the id of the last one that was looked at, to go on after it; empty if there are no more."""
    found: list[RunStatus] = []
    before, looked = chosen.before, 0
    size = chosen.limit + 1 if not (chosen.agent or chosen.text or chosen.state not in (GOING, ALL)) else _BATCH
    while batch := tx.runs.all(going=chosen.state in (GOING, *_GOING), limit=size, before=before):
        for run in batch:
            if not chosen.has(run):
                continue
            status = run_status(tx, broker.ledger, run)
            if chosen.state in (GOING, ALL, status.word):
                found.append(status)
            if len(found) > chosen.limit:
                return found[:-1], found[-2].run.id
        before, looked = batch[-1].id, looked + len(batch)
        if len(batch) < size:
            break
        if chosen.looks is not None and looked >= chosen.looks:
            return found, before
    return found, ""


async def run_list(broker: Broker, chosen: RunFilter) -> RunList:
    """Return the newest runs that are chosen, after expired requests were settled."""
    await broker.sweep()
    runs, last = await broker.store.read(lambda tx: _page(tx, broker, chosen))
    halted = visible(await broker.switch.state())
    return RunList(runs=tuple(map(RunView.of, runs)), halted=halted, next=last or None)


async def run_history_view(broker: Broker, prefix: str, *, most: int | None = None) -> RunHistoryView:
    """Return the run whose id begins with `prefix`, with its timeline: the last `most` entries."""
    found = await run_history(broker, prefix, in_utc, most=most)
    return RunHistoryView(
        run=RunView.of(found.status), timeline=tuple(found.moments), earlier=found.earlier, spent=found.usage
    )
