"""API endpoints for comments on requests: notes, questions back, and their answers."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import Field

from signoff.core.access import Permission
from signoff.core.comment import LONGEST, CommentKind, unanswered
from signoff.desk.operations import comment
from signoff.errors import RequestError
from signoff.server.api_requests import found
from signoff.server.endpoint import ApiModel, Endpoint, Nothing, Visit
from signoff.server.problem import ProblemRaised
from signoff.views.json_form import View
from signoff.views.request_view import CommentView


class CommentBody(ApiModel):
    """A new comment. It decides nothing."""

    text: str = Field(min_length=1, max_length=LONGEST)
    kind: CommentKind = CommentKind.NOTE
    answers: str = Field(default="", max_length=100, description="Id of the question that this answers.")
    agent: bool = Field(
        default=False,
        description="Have the agent's model answer the question from the history of its run. The answer arrives later, "
        "as a comment.",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CommentsView(View):
    """The comments on a request, in order."""

    comments: tuple[CommentView, ...]
    unanswered: tuple[str, ...]
    """Ids of unanswered questions."""


async def list_comments(visit: Visit[Nothing, Nothing]) -> CommentsView:
    request = await found(visit)
    comments = await visit.state.broker.comments.of(request.id)
    return CommentsView(
        comments=tuple(CommentView.of(one, request.secrets) for one in comments),
        unanswered=tuple(one.id for one in unanswered(comments)),
    )


async def add_comment(visit: Visit[Nothing, CommentBody]) -> CommentView:
    request, body, runs = await found(visit), visit.body, visit.state.runs
    if body.agent and body.kind is not CommentKind.QUESTION:
        raise ProblemRaised(422, "invalid", "only a question can be sent to an agent")
    if body.agent and runs is None:
        raise RequestError("no agents run here: only people can be asked")
    if body.agent and runs is not None:
        await runs.check_agent(request)
    said = await comment(visit.state.broker, request, body.text, body.kind, visit.identity.acting, body.answers)
    if body.agent and runs is not None:
        runs.ask_agent(said)
    return CommentView.of(said, request.secrets)


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/requests/{request_id}/comments",
        name="list_comments",
        about="List the comments on a request.",
        permission=Permission.READ,
        handle=list_comments,
        returns=CommentsView,
        tag="comments",
    ),
    Endpoint(
        method="POST",
        path="/requests/{request_id}/comments",
        name="add_comment",
        about="Add a note, ask a question or answer one. The request stays pending.",
        permission=Permission.ANSWER,
        handle=add_comment,
        body=CommentBody,
        returns=CommentView,
        status=201,
        tag="comments",
        once=True,
    ),
)
