"""API endpoints for comments on requests: notes, questions back, and their answers."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from signoff.core.access import Permission
from signoff.core.comment import LONGEST, Comment, CommentKind, unanswered
from signoff.core.request import ApprovalRequest
from signoff.core.safe_text import safe_text
from signoff.core.visible_text import visible
from signoff.desk.operations import comment
from signoff.errors import RequestError
from signoff.server.api_requests import found
from signoff.server.endpoint import ApiModel, Endpoint, Nothing, Visit
from signoff.server.problem import ProblemRaised


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


class CommentView(ApiModel):
    """A comment."""

    id: str
    kind: CommentKind
    by: str
    via: str
    at: datetime
    text: str
    answers: str


class CommentsView(ApiModel):
    """The comments on a request, in order."""

    comments: list[CommentView]
    unanswered: list[str] = Field(description="Ids of unanswered questions.")


async def list_comments(visit: Visit[Nothing, Nothing]) -> CommentsView:
    request = await found(visit)
    comments = await visit.state.broker.comments.of(request.id)
    return CommentsView(
        comments=[_view(request, one) for one in comments], unanswered=[one.id for one in unanswered(comments)]
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
    return _view(request, said)


def _view(request: ApprovalRequest, comment: Comment) -> CommentView:
    return CommentView(
        id=comment.id,
        kind=comment.kind,
        by=visible(str(comment.by)),
        via=visible(comment.by.via),
        at=comment.at,
        text=safe_text(comment.text, secrets=request.secrets, lines=True),
        answers=visible(comment.answers),
    )


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
