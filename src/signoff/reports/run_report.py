"""Runs as data: the output of `signoff runs --json`, and what its text output is made from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from signoff.core.moment import in_utc, iso
from signoff.core.safe_text import safe_text
from signoff.reports.request_sheet import TOLD

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.broker.run_status import RunStatus
    from signoff.broker.timeline import ModelUsage, Moment
    from signoff.core.inbox_row import RunItem


async def runs_report(broker: Broker, *, everything: bool, limit: int, before: str = "") -> dict[str, Any]:
    """Return the newest runs, after expired requests were settled; with `everything`, finished ones too.

    With `before`, the runs that began before that run.
    """
    await broker.sweep()
    found = await broker.runs.list(going=not everything, limit=limit + 1, before=before)
    halted = await broker.switch.state()
    return {"halted": halted or None, "runs": [run_data(one) for one in found[:limit]], "more": len(found) > limit}


async def run_report(broker: Broker, prefix: str, *, most: int | None = None) -> dict[str, Any]:
    """Return the run whose id begins with `prefix`, with its timeline: the last `most` entries."""
    from signoff.broker.timeline import run_history

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
    from signoff.broker.run_status import MOST_NAMED

    return [{"id": one.id, "state": str(one.state), "title": one.title} for one in items[:MOST_NAMED]]


def _moment_data(one: Moment) -> dict[str, Any]:
    return {
        "at": iso(one.at),
        "kind": one.kind,
        "who": one.who or None,
        "what": one.what,
        "rules": list(one.rules),
        "request": one.request or None,
    }


def _spent_data(took: ModelUsage) -> dict[str, Any]:
    return {
        "answers": took.answers,
        "input_tokens": took.input_tokens,
        "output_tokens": took.output_tokens,
        "cost": str(took.cost) if took.cost is not None else None,
    }
