"""API endpoints for requests: list, show, assign, mark as read, and report outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any

from pydantic import Field

from signoff.core.access import Permission
from signoff.core.record import Entry
from signoff.core.request import ApprovalRequest
from signoff.core.request_filter import ListState, RequestFilter
from signoff.core.visible_text import visible
from signoff.desk.operations import assign
from signoff.errors import WrongUse
from signoff.large_work import done
from signoff.server.endpoint import ApiModel, Endpoint, Nothing, Visit
from signoff.server.list_cursor import LONGEST_CURSOR
from signoff.server.problem import ProblemRaised
from signoff.server.waiting_list import inbox_filter
from signoff.views.inbox_view import MOST_LISTED, RequestPage
from signoff.views.json_form import View
from signoff.views.request_view import RequestView, args_digest_of

_Text = Annotated[str, Field(max_length=200)]
LONGEST_NAME = 200
"""Maximum length of a person's name."""


class RequestQuery(ApiModel):
    """Which requests; each that is given has to fit."""

    state: ListState = Field(
        default=ListState.WAITING, description="Pending requests are listed the oldest first, others the newest first."
    )
    tool: _Text = ""
    worker: _Text = Field(default="", description="The chain of workers, `triage > desk`, or one of them.")
    run: _Text = ""
    assigned: _Text | None = Field(
        default=None, description="Who it is assigned to; empty: requests that nobody is assigned to."
    )
    q: _Text = Field(default="", description="Part of the title, the tool or the worker.")
    mine: bool = Field(
        default=False, description="Only waiting requests that you can answer and that nobody else is assigned to."
    )
    limit: int = Field(default=50, ge=1, le=MOST_LISTED)
    cursor: str | None = Field(default=None, max_length=LONGEST_CURSOR, description="`next` of the previous page.")


class AssignBody(ApiModel):
    """Who to assign a request to."""

    to: str = Field(min_length=1, max_length=LONGEST_NAME)


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignedView(View):
    """A request, and who it is assigned to."""

    request: RequestView
    warning: str
    """A warning if the assigned person may not answer it, so that nobody can; otherwise empty."""


class OutcomeBody(ApiModel):
    """The outcome of a call whose process died."""

    happened: bool
    note: str = Field(default="", max_length=4_000)


class ReadBody(ApiModel):
    """Which arguments you have read."""

    args_digest: str = Field(max_length=100)


class PresenceBody(ApiModel):
    """Whether you are looking at a request."""

    looking: bool = True


class PresenceView(ApiModel):
    """Who is looking at a request."""

    people: list[str]


async def found(visit: Visit[Any, Any]) -> ApprovalRequest:
    """Return the request that the path names."""
    return await visit.state.broker.find(visit.path["request_id"])


async def seen(
    visit: Visit[Any, Any],
    request: ApprovalRequest,
    *,
    card: bool = True,
    history: Sequence[Entry] | None = None,
) -> RequestView:
    """Return a request as the caller may see it."""
    by = visit.identity.actor
    made = partial(RequestView.of, request, by.name, with_card=card, history=history)
    view = await done(f"showing request {request.id}", request.effective_args, made)
    return replace(view, read=await visit.state.inbox.has_opened(request.id, by)) if view.long else view


async def list_requests(visit: Visit[RequestQuery, Nothing]) -> RequestPage:
    state, query = visit.state, visit.query
    if query.mine and query.state is not ListState.WAITING:
        raise ProblemRaised(422, "invalid", "only waiting requests can be listed by who may answer them")
    chosen = RequestFilter(
        state=query.state,
        tool=query.tool,
        worker=query.worker,
        run=query.run,
        assigned=_spelled(visit, query.assigned) if query.assigned else query.assigned,
        text=query.q.strip(),
    )
    wanted = inbox_filter(
        state, visit.identity.actor, mine=query.mine, chosen=chosen, after=query.cursor, limit=query.limit
    )
    return await wanted.page_by(state.broker)


def _spelled(visit: Visit[RequestQuery, Nothing], name: str) -> str:
    """Return a name as it is listed; an unknown name stays as it is."""
    try:
        return visit.state.broker.people.named(name)
    except WrongUse:
        return name


async def show_request(visit: Visit[Nothing, Nothing]) -> RequestView:
    broker = visit.state.broker
    await broker.sweep()
    request = await broker.shown(await found(visit), visit.identity.actor)
    history = await broker.store.read(lambda tx: tx.record.entries(request=request.id))
    return await seen(visit, request, history=history)


async def claim_request(visit: Visit[Nothing, Nothing]) -> AssignedView:
    return await _assigned(visit, visit.identity.actor.name)


async def release_request(visit: Visit[Nothing, Nothing]) -> AssignedView:
    return await _assigned(visit, "")


async def assign_request(visit: Visit[Nothing, AssignBody]) -> AssignedView:
    return await _assigned(visit, visit.state.broker.people.named(visit.body.to))


async def _assigned(visit: Visit[Any, Any], to: str) -> AssignedView:
    done = await assign(visit.state.broker, visit.path["request_id"], to, visit.identity.acting)
    warning = (
        ""
        if done.may_answer
        else f"{visible(to)} may not answer it, and nobody else can approve it while it is assigned: release it"
    )
    return AssignedView(request=await seen(visit, done.request), warning=warning)


async def tell_outcome(visit: Visit[Nothing, OutcomeBody]) -> RequestView:
    request = await found(visit)
    by, body = visit.identity.actor, visit.body
    return await seen(visit, await visit.state.inbox.tell(request.id, happened=body.happened, by=by, note=body.note))


async def read_request(visit: Visit[Nothing, ReadBody]) -> RequestView:
    request = await found(visit)
    if visit.body.args_digest != args_digest_of(request):
        raise ProblemRaised(409, "args-changed", "the arguments have changed since you read them: read them again")
    await visit.state.inbox.opened(request.id, visit.identity.actor)
    return await seen(visit, request)


async def note_presence(visit: Visit[Nothing, PresenceBody]) -> PresenceView:
    request, presence = await found(visit), visit.state.presence
    note = presence.looks if visit.body.looking else presence.leaves
    return PresenceView(people=list(note(request.id, visit.identity.actor)))


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/requests",
        name="list_requests",
        about="List requests, in pages.",
        permission=Permission.READ,
        handle=list_requests,
        query=RequestQuery,
        returns=RequestPage,
    ),
    Endpoint(
        method="GET",
        path="/requests/{request_id}",
        name="show_request",
        about="Get a request with its comments and its history. The beginning of the id is enough.",
        permission=Permission.READ,
        handle=show_request,
        returns=RequestView,
    ),
    Endpoint(
        method="POST",
        path="/requests/{request_id}/claim",
        name="claim_request",
        about="Assign a request to yourself, even if it is assigned to somebody else.",
        permission=Permission.ANSWER,
        handle=claim_request,
        returns=AssignedView,
    ),
    Endpoint(
        method="POST",
        path="/requests/{request_id}/release",
        name="release_request",
        about="Release a request, so that it is assigned to nobody.",
        permission=Permission.ANSWER,
        handle=release_request,
        returns=AssignedView,
    ),
    Endpoint(
        method="POST",
        path="/requests/{request_id}/assign",
        name="assign_request",
        about="Assign a request to somebody.",
        permission=Permission.ANSWER,
        handle=assign_request,
        body=AssignBody,
        returns=AssignedView,
    ),
    Endpoint(
        method="POST",
        path="/requests/{request_id}/outcome",
        name="tell_outcome",
        about="Record the outcome of a call whose process died. If it did not happen, it can be asked about again.",
        permission=Permission.ANSWER,
        handle=tell_outcome,
        body=OutcomeBody,
        returns=RequestView,
    ),
    Endpoint(
        method="POST",
        path="/requests/{request_id}/read",
        name="read_request",
        about="Confirm that you have read all of a long call. Without this, you cannot approve it.",
        permission=Permission.ANSWER,
        handle=read_request,
        body=ReadBody,
        returns=RequestView,
    ),
    Endpoint(
        method="POST",
        path="/requests/{request_id}/presence",
        name="note_presence",
        about="Report every 30 seconds that you are looking at a request, or that you stopped. Returns who is looking.",
        permission=Permission.READ,
        handle=note_presence,
        body=PresenceBody,
        returns=PresenceView,
    ),
)
