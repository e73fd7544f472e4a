"""API endpoints for runs: start, list, show with their timeline, resume, cancel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from pydantic import Field

from signoff.core.access import Permission
from signoff.core.people import ActorKind
from signoff.core.safe_text import safe_text
from signoff.core.visible_text import visible
from signoff.desk import operations
from signoff.errors import WrongUse
from signoff.server.endpoint import ApiModel, Endpoint, Nothing, Visit
from signoff.server.identity import Identity
from signoff.server.problem import ProblemRaised
from signoff.server.state import RunControl, ServerState
from signoff.views.inbox_view import MOST_LISTED
from signoff.views.run_view import (
    LONGEST_TIMELINE,
    THIS_SERVER,
    RunFilter,
    RunHistoryView,
    RunList,
    RunView,
    run_history_view,
    run_list,
)

LONGEST_PROMPT = 200_000
"""Maximum length of a prompt."""
MOST_LOOKED_AT = 1_000
"""At most about how many runs are looked at for one page, to find those that are selected."""


class RunQuery(ApiModel):
    """Which runs."""

    state: Literal["going", "all", "running", "waiting", "ready", "died", "done", "failed", "cancelled", "damaged"] = (
        Field(default="going", description="Going: all that have not ended.")
    )
    agent: str = Field(default="", max_length=200, description="The name of the worker or agent.")
    search: str = Field(
        default="", max_length=200, description="Part of the id, agent, task, requester, or of how it ended."
    )
    limit: int = Field(default=50, ge=1, le=MOST_LISTED)
    cursor: str = Field(default="", max_length=200, description="`next` of the previous page.")

    @property
    def chosen(self) -> RunFilter:
        """Which runs these are."""
        return RunFilter(
            limit=self.limit,
            state=self.state,
            agent=self.agent.strip(),
            text=self.search.strip(),
            before=self.cursor,
            looks=MOST_LOOKED_AT,
        )


class TimelineQuery(ApiModel):
    """How much of what happened."""

    limit: int = Field(default=500, ge=1, le=LONGEST_TIMELINE, description="How many of the last events to return.")


class RunBody(ApiModel):
    """What to run."""

    worker: str = Field(min_length=1, max_length=200)
    prompt: str = Field(default="", max_length=LONGEST_PROMPT)
    input: dict[str, Any] | None = Field(default=None, description="For a worker with an `input` schema.")


class CancelBody(ApiModel):
    """Why a run is cancelled."""

    reason: str = Field(default="", max_length=4_000)


class WorkerView(ApiModel):
    """A worker that can be started."""

    name: str
    about: str


class WorkersView(ApiModel):
    """List the workers that can be started here."""

    workers: list[WorkerView]


async def list_runs(visit: Visit[RunQuery, Nothing]) -> RunList:
    return await run_list(visit.state.broker, visit.query.chosen)


async def start_run(visit: Visit[Nothing, RunBody]) -> RunView:
    control, body = _control(visit.state), visit.body
    run_id = await control.start(
        body.worker,
        body.prompt,
        input=body.input,
        requester=visit.identity.actor.name,
        behind=_behind(visit.state, visit.identity),
    )
    return await _shown(visit.state, run_id)


def _behind(state: ServerState, identity: Identity) -> str | None:
    """Who answers for a program: the person who made its key; empty if not known, None if it is no program."""
    if identity.actor.kind is ActorKind.PERSON:
        return None
    maker = identity.key.created_by if identity.key is not None else ""
    try:
        return state.broker.people.named(maker)
    except WrongUse:
        return ""


async def show_run(visit: Visit[TimelineQuery, Nothing]) -> RunHistoryView:
    found = await run_history_view(visit.state.broker, visit.path["run_id"], most=visit.query.limit)
    runs = visit.state.runs
    resumes = runs is not None and found.run.is_idle and not await runs.hindrance(found.run.id)
    return replace(found, run=replace(found.run, resumer=THIS_SERVER)) if resumes else found


async def resume_run(visit: Visit[Nothing, Nothing]) -> RunView:
    control, broker = _control(visit.state), visit.state.broker
    run = await broker.runs.get(visit.path["run_id"])
    await control.resume(run.id)
    return await _shown(visit.state, run.id)


async def cancel_run(visit: Visit[Nothing, CancelBody]) -> RunView:
    broker = visit.state.broker
    done = await operations.cancel_run(broker, visit.path["run_id"], visit.body.reason, visit.identity.acting)
    return await _shown(visit.state, done.id)


async def list_workers(visit: Visit[Nothing, Nothing]) -> WorkersView:
    known: Mapping[str, str] = visit.state.runs.workers() if visit.state.runs is not None else {}
    workers = [WorkerView(name=visible(name), about=safe_text(about)) for name, about in known.items()]
    return WorkersView(workers=workers)


def _control(state: ServerState) -> RunControl:
    if state.runs is None:
        raise ProblemRaised(
            409, "runs-elsewhere", "this server runs no agents: start and resume runs where the agents are"
        )
    return state.runs


async def _shown(state: ServerState, run_id: str) -> RunView:
    return RunView.of(await state.broker.runs.status(run_id))


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/runs",
        name="list_runs",
        about="List runs in pages, the newest first.",
        permission=Permission.READ,
        handle=list_runs,
        query=RunQuery,
        returns=RunList,
        tag="runs",
    ),
    Endpoint(
        method="POST",
        path="/runs",
        name="start_run",
        about="Start a worker. Responds as soon as the run is saved; its questions appear as requests.",
        permission=Permission.RUN,
        handle=start_run,
        body=RunBody,
        returns=RunView,
        status=201,
        tag="runs",
        once=True,
    ),
    Endpoint(
        method="GET",
        path="/runs/{run_id}",
        name="show_run",
        about="Get a run with its events. The beginning of the id is enough.",
        permission=Permission.READ,
        handle=show_run,
        query=TimelineQuery,
        returns=RunHistoryView,
        tag="runs",
    ),
    Endpoint(
        method="POST",
        path="/runs/{run_id}/resume",
        name="resume_run",
        about="Resume a run now, if it can continue.",
        permission=Permission.RUN,
        handle=resume_run,
        returns=RunView,
        status=202,
        tag="runs",
    ),
    Endpoint(
        method="POST",
        path="/runs/{run_id}/cancel",
        name="cancel_run",
        about="Cancel a run: its pending requests are withdrawn, its unused approvals are void, it cannot be resumed.",
        permission=Permission.RUN,
        handle=cancel_run,
        body=CancelBody,
        returns=RunView,
        tag="runs",
    ),
    Endpoint(
        method="GET",
        path="/workers",
        name="list_workers",
        about="List the workers that can be started here.",
        permission=Permission.READ,
        handle=list_workers,
        returns=WorkersView,
        tag="runs",
    ),
)
