"""API endpoints for runs: start, list, show with their timeline, resume, cancel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from signoff.broker.run_status import MOST_NAMED, RunStatus
from signoff.broker.timeline import ModelUsage, Moment, run_history
from signoff.core.access import Permission
from signoff.core.inbox_row import RunItem
from signoff.core.moment import in_utc
from signoff.core.people import ActorKind
from signoff.core.request import State
from signoff.core.safe_text import kept_text, safe_text
from signoff.core.visible_text import visible
from signoff.desk import operations
from signoff.errors import WrongUse
from signoff.reports.run_report import RunsView, name_of, runs_page
from signoff.server.endpoint import ApiModel, Endpoint, Nothing, Visit
from signoff.server.identity import Identity
from signoff.server.problem import ProblemRaised
from signoff.server.state import RunControl, ServerState

LONGEST_PROMPT = 200_000
"""Maximum length of a prompt."""
LONGEST_TIMELINE = 5_000
MOST_LOOKED_AT = 1_000
"""At most about how many runs are looked at for one page, to find those that are selected."""


class RunsChosen(ApiModel):
    """By what runs are selected."""

    state: Literal["going", "all", "running", "waiting", "ready", "died", "done", "failed", "cancelled", "damaged"] = (
        Field(default="going", description="Going: all that have not ended.")
    )
    agent: str = Field(default="", max_length=200, description="The name of the worker or agent.")
    search: str = Field(
        default="", max_length=200, description="Part of the id, agent, task, requester, or of how it ended."
    )

    def view(self, *, limit: int, before: str) -> RunsView:
        """Return which runs these are."""
        return RunsView(
            limit=limit,
            state=self.state,
            agent=self.agent.strip(),
            text=self.search.strip(),
            before=before,
            looks=MOST_LOOKED_AT,
        )


class RunQuery(RunsChosen):
    """Which runs."""

    limit: int = Field(default=50, ge=1, le=200)
    cursor: str = Field(default="", max_length=200, description="`next` of the previous page.")


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


class RunRequest(ApiModel):
    """A request of a run."""

    id: str
    state: State
    title: str


class RunView(ApiModel):
    """The status of a run."""

    id: str
    state: str = Field(description="running, waiting, ready, died, done, failed, cancelled or damaged.")
    agent: str
    name: str = Field(description="The name of the worker or agent, as people see it; empty if it has none.")
    prompt: str
    requester: str
    loosened: list[str]
    started_at: datetime | None
    changed_at: datetime | None
    waiting: list[RunRequest] = Field(description=f"What it waits for: the oldest requests, at most {MOST_NAMED}.")
    waiting_count: int = Field(description="How many requests it waits for.")
    answered: list[RunRequest] = Field(
        description=f"The oldest requests that are answered, but whose answer is not yet used, at most {MOST_NAMED}."
    )
    answered_count: int = Field(description="How many answers are not yet used.")
    process: int | None = Field(description="The process that executes it, if it is alive.")
    detail: str = Field(description="How it ended: an error, or the beginning of its result.")


class RunList(ApiModel):
    """A page of runs, the newest first."""

    runs: list[RunView]
    halted: str = Field(description="Why execution is halted; empty if it is not.")
    next: str | None


class MomentView(ApiModel):
    """One event of a run."""

    at: datetime
    kind: str = Field(
        description="`prompt`, `model` for a text of the model, or the kind of the event in the audit log."
    )
    who: str
    what: str
    rules: list[str]
    request: str
    result: str = Field(description="The beginning of what a call returned; empty if it is not recorded.")
    exit_code: int | None = Field(description="Of a command that failed.")


class UsageView(ApiModel):
    """What the models of a run used, as far as it is recorded."""

    answers: int
    input_tokens: int
    output_tokens: int
    cost: str | None = Field(description="In dollars; null unless every answer has a price.")


class RunHistoryView(ApiModel):
    """A run with its events."""

    run: RunView
    timeline: list[MomentView] = Field(description="The oldest first.")
    earlier: int = Field(description="How many earlier entries there are.")
    spent: UsageView


class WorkerView(ApiModel):
    """A worker that can be started."""

    name: str
    about: str


class WorkersView(ApiModel):
    """List the workers that can be started here."""

    workers: list[WorkerView]


async def list_runs(visit: Visit[RunQuery, Nothing]) -> RunList:
    broker, query = visit.state.broker, visit.query
    await broker.sweep()
    page = await runs_page(broker, query.view(limit=query.limit, before=query.cursor))
    return RunList(
        runs=[run_view(one) for one in page.runs],
        halted=visible(await broker.switch.state()),
        next=page.last or None,
    )


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
    found = await run_history(visit.state.broker, visit.path["run_id"], in_utc, most=visit.query.limit)
    return RunHistoryView(
        run=run_view(found.status),
        timeline=[_moment(one) for one in found.moments],
        earlier=found.earlier,
        spent=_usage(found.usage),
    )


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
    return run_view(await state.broker.runs.status(run_id))


def run_view(status: RunStatus) -> RunView:
    """Return a run that is safe to send."""
    run, process = status.run, status.process
    return RunView(
        id=visible(run.id),
        state=status.word,
        agent=visible(run.agent),
        name=safe_text(name_of(run)),
        prompt=safe_text(run.prompt, lines=True),
        requester=safe_text(run.requester),
        loosened=[safe_text(one) for one in run.setup.loosened.texts],
        started_at=run.started_at,
        changed_at=run.changed_at,
        waiting=_requests(status.waiting),
        waiting_count=status.waits,
        answered=_requests(status.answered),
        answered_count=len(status.answered),
        process=process.pid if process is not None and status.alive else None,
        detail=kept_text(status.damaged or run.detail, lines=True),
    )


def _requests(requests: Sequence[RunItem]) -> list[RunRequest]:
    named = requests[:MOST_NAMED]
    return [RunRequest(id=visible(one.id), state=one.state, title=kept_text(one.title)) for one in named]


def _moment(one: Moment) -> MomentView:
    return MomentView(
        at=one.at,
        kind=one.kind,
        who=one.who,
        what=one.what,
        rules=list(one.rules),
        request=visible(one.request),
        result=one.result,
        exit_code=one.exit_code,
    )


def _usage(usage: ModelUsage) -> UsageView:
    return UsageView(
        answers=usage.answers,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cost=str(usage.cost) if usage.cost is not None else None,
    )


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
