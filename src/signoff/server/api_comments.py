"""The API's endpoints about what is said of requests while they wait: notes, questions back, and their answers."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from signoff.broker.comments import unanswered
from signoff.core.access import Permission
from signoff.core.comment import LONGEST, Comment, CommentKind
from signoff.core.request import ApprovalRequest
from signoff.core.safe import safe_text
from signoff.core.visible import visible
from signoff.server.api_requests import found
from signoff.server.endpoint import ApiModel, Endpoint, Nothing, Visit


class CommentBody(ApiModel):
    """Something to say. It decides nothing."""

    text: str = Field(min_length=1, max_length=LONGEST)
    kind: CommentKind = CommentKind.NOTE
    answers: str = Field(default="", max_length=100, description="Id of the question that an answer is to.")


class CommentView(ApiModel):
    """Something that was said."""

    id: str
    kind: CommentKind
    by: str
    via: str
    at: datetime
    text: str
    answers: str


class CommentsView(ApiModel):
    """What was said about a request, in order."""

    comments: list[CommentView]
    unanswered: list[str] = Field(description="Ids of questions that nobody has answered yet.")


async def list_comments(visit: Visit[Nothing, Nothing]) -> CommentsView:
    request = await found(visit)
    comments = await visit.state.broker.comments.of(request.id)
    return CommentsView(
        comments=[_view(request, one) for one in comments], unanswered=[one.id for one in unanswered(comments)]
    )


async def add_comment(visit: Visit[Nothing, CommentBody]) -> CommentView:
    request, body = await found(visit), visit.body
    comments, by = visit.state.broker.comments, visit.identity.actor
    return _view(request, await comments.add(request.id, body.text, by=by, kind=body.kind, answers=body.answers))


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
        about="What was said about a request.",
        permission=Permission.READ,
        handle=list_comments,
        returns=CommentsView,
        tag="comments",
    ),
    Endpoint(
        method="POST",
        path="/requests/{request_id}/comments",
        name="add_comment",
        about="Note something, ask back, or answer a question. The request waits on.",
        permission=Permission.ANSWER,
        handle=add_comment,
        body=CommentBody,
        returns=CommentView,
        status=201,
        tag="comments",
        once=True,
    ),
)
