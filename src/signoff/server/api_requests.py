"""The API's endpoints about requests."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import replace
from datetime import datetime

from pydantic import Field

from signoff.core.access import Permission
from signoff.core.decision import ApprovalDecision, Remember
from signoff.core.inbox_row import Item
from signoff.core.offer import offers
from signoff.core.request import State
from signoff.core.terms import Scope, Terms
from signoff.errors import AlreadySettled, RequestError
from signoff.server.endpoint import ApiModel, Endpoint, Nothing, Visit
from signoff.server.problem import ProblemRaised
from signoff.server.request_models import RequestPage, RequestView, VoteBody, row_of, view_of


class RequestQuery(ApiModel):
    """Which requests."""

    limit: int = Field(default=50, ge=1, le=200)
    cursor: str | None = Field(default=None, max_length=400)


async def waiting(visit: Visit[RequestQuery, Nothing]) -> RequestPage:
    broker, query = visit.state.broker, visit.query
    await broker.sweep()
    items = await broker.inbox(limit=query.limit + 1, after=_after(query.cursor))
    rows = [row_of(one) for one in items[: query.limit]]
    return RequestPage(requests=rows, next=_cursor(items[query.limit - 1]) if len(items) > query.limit else None)


async def show(visit: Visit[Nothing, Nothing]) -> RequestView:
    request = await visit.state.broker.find(visit.path["request_id"])
    return view_of(request, visit.identity.actor.name)


async def vote(visit: Visit[Nothing, VoteBody]) -> RequestView:
    state, body, by = visit.state, visit.body, visit.identity.actor
    request = await state.broker.find(visit.path["request_id"])
    if request.state is State.PENDING and body.args_digest != request.args_digest:
        raise AlreadySettled("the arguments are not those that you were shown: read them again")
    decision = ApprovalDecision(approved=body.decision == "approve", by=by, note=body.note, edited_args=body.args)
    if body.remember is not None:
        offered = offers(request)
        if not 1 <= body.remember <= len(offered):
            raise RequestError(f"request {request.id} offers no {body.remember}; there are {len(offered)}")
        terms = Terms(scope=Scope.PROJECT, pattern=offered[body.remember - 1].pattern)
        decision = replace(decision, remember=Remember.ALWAYS, terms=terms)
    return view_of(await state.inbox.answer(request.id, decision), by.name)


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/requests",
        name="list_requests",
        about="What waits for a person, oldest first.",
        permission=Permission.READ,
        handle=waiting,
        query=RequestQuery,
        returns=RequestPage,
    ),
    Endpoint(
        method="GET",
        path="/requests/{request_id}",
        name="show_request",
        about="One request. The id may be its beginning.",
        permission=Permission.READ,
        handle=show,
        returns=RequestView,
    ),
    Endpoint(
        method="POST",
        path="/requests/{request_id}/votes",
        name="vote",
        about="Approve or deny, as the person whose key is sent.",
        permission=Permission.ANSWER,
        handle=vote,
        body=VoteBody,
        returns=RequestView,
    ),
)


def _cursor(item: Item) -> str:
    return urlsafe_b64encode(json.dumps([item.opened_at.isoformat(), item.id]).encode()).decode()


def _after(cursor: str | None) -> Item | None:
    """The item that a cursor stands for, as far as a page needs it."""
    if cursor is None:
        return None
    try:
        opened_at, request_id = json.loads(urlsafe_b64decode(cursor))
        moment = datetime.fromisoformat(opened_at)
        if moment.tzinfo is None or not isinstance(request_id, str):
            raise ValueError(cursor)
    except (ValueError, TypeError) as error:
        raise ProblemRaised(422, "bad-cursor", "this cursor is none of ours: begin with the first page") from error
    return Item(
        id=request_id,
        state=State.PENDING,
        title="",
        tool="",
        worker="",
        run="",
        role="",
        quorum=1,
        votes=0,
        assigned="",
        opened_at=moment,
        deadline=None,
        escalated=False,
    )
