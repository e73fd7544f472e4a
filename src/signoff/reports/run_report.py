"""Runs as data: the output of `signoff runs --json`, and what its text output and the page of runs are made from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from signoff.broker.run_status import MOST_NAMED, RunStatus, run_status
from signoff.broker.timeline import ModelUsage, Moment, run_history
from signoff.core.moment import in_utc, iso
from signoff.core.request_filter import has_text
from signoff.core.run import RunState, SavedRun
from signoff.core.safe_text import safe_text
from signoff.reports.request_sheet import TOLD

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


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsView:
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


class RunsPage(NamedTuple):
    """Some runs, the newest first."""

    runs: Sequence[RunStatus]
    last: str
    """The id of the last run that was looked at, to go on after it; empty if there are no more."""


def name_of(run: SavedRun) -> str:
    """The name of a run's worker or agent; empty if it has none."""
    return run.agent.removeprefix("worker:") or run.name


async def runs_page(broker: Broker, view: RunsView) -> RunsPage:
    """Return the newest runs that the view selects, each with what it waits for."""
    return await broker.store.read(lambda tx: _page(tx, broker, view))


def _page(tx: Transaction, broker: Broker, view: RunsView) -> RunsPage:
    found: list[RunStatus] = []
    before, looked = view.before, 0
    size = view.limit + 1 if not (view.agent or view.text or view.state not in (GOING, ALL)) else _BATCH
    while batch := tx.runs.all(going=view.state in (GOING, *_GOING), limit=size, before=before):
        for run in batch:
            if not view.has(run):
                continue
            status = run_status(tx, broker.ledger, run)
            if view.state in (GOING, ALL, status.word):
                found.append(status)
            if len(found) > view.limit:
                return RunsPage(found[:-1], found[-2].run.id)
        before, looked = batch[-1].id, looked + len(batch)
        if len(batch) < size:
            break
        if view.looks is not None and looked >= view.looks:
            return RunsPage(found, before)
    return RunsPage(found, "")


async def runs_report(broker: Broker, view: RunsView) -> dict[str, Any]:
    """Return the newest runs that the view selects, after expired requests were settled."""
    await broker.sweep()
    page = await runs_page(broker, view)
    halted = await broker.switch.state()
    return {
        "halted": halted or None,
        "runs": [run_data(one) for one in page.runs],
        "more": bool(page.last),
        TOLD: {"last": page.last},
    }


async def run_report(broker: Broker, prefix: str, *, most: int | None = None) -> dict[str, Any]:
    """Return the run whose id begins with `prefix`, with its timeline: the last `most` entries."""
    found = await run_history(broker, prefix, in_utc, most=most)
    return {
        **run_data(found.status),
        "earlier": found.earlier,
        "timeline": [_moment_data(one) for one in found.moments],
        "spent": _spent_data(found.usage),
    }


def run_data(status: RunStatus) -> dict[str, Any]:
    """Return a run as JSON data."""
    run, process = status.run, status.process
    return {
        "id": run.id,
        "state": status.word,
        "agent": run.agent or None,
        "name": safe_text(name_of(run)) or None,
        "prompt": safe_text(run.prompt),
        "requester": run.requester or None,
        "loosened": [safe_text(one) for one in run.setup.loosened.texts],
        "started_at": iso(run.started_at),
        "changed_at": iso(run.changed_at),
        "waiting": _items(status.waiting),
        "waiting_count": status.waits,
        "answered": _items(status.answered),
        "answered_count": len(status.answered),
        "process": process.pid if process is not None and status.alive else None,
        "detail": status.damaged or run.detail or None,
        TOLD: {
            "task": safe_text(" ".join(run.prompt.split())),
            "for": safe_text(run.requester),
            "alive": status.alive,
            "died": status.died,
        },
    }


def _items(items: Sequence[RunItem]) -> list[dict[str, Any]]:
    return [{"id": one.id, "state": str(one.state), "title": one.title} for one in items[:MOST_NAMED]]


def _moment_data(one: Moment) -> dict[str, Any]:
    return {
        "at": iso(one.at),
        "kind": one.kind,
        "who": one.who or None,
        "what": one.what,
        "rules": list(one.rules),
        "request": one.request or None,
        "result": one.result or None,
        "exit_code": one.exit_code,
    }


def _spent_data(took: ModelUsage) -> dict[str, Any]:
    return {
        "answers": took.answers,
        "input_tokens": took.input_tokens,
        "output_tokens": took.output_tokens,
        "cost": str(took.cost) if took.cost is not None else None,
    }
