"""What is said about a request while it waits: notes, questions back, and their answers. None of it decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from signoff.core.people import Actor, ActorKind
from signoff.errors import RequestError

LONGEST = 4_000
"""Characters of a comment."""
MOST = 200
"""Comments on a request."""


class CommentKind(StrEnum):
    """What a comment is."""

    NOTE = "note"
    QUESTION = "question"
    """Asked back: it waits for an answer, and the request for its decision."""
    ANSWER = "answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """One comment. Its text is not safe to show: secrets in it are masked, and what hides made visible, by cards."""

    id: str
    request: str
    by: Actor
    at: datetime
    text: str
    kind: CommentKind = CommentKind.NOTE
    answers: str = ""
    """Id of the question that an answer is to."""

    @property
    def is_claim(self) -> bool:
        """Whether a model says it: nothing checks it."""
        return self.by.kind is ActorKind.MODEL

    @property
    def heading(self) -> str:
        """Who does what: `ana asks back`. Names are not yet safe to show."""
        return f"{self.by} {_VERBS[self.kind]}"


_VERBS = {CommentKind.NOTE: "says", CommentKind.QUESTION: "asks back", CommentKind.ANSWER: "answers"}


def unanswered(comments: Sequence[Comment]) -> list[Comment]:
    """Questions that nobody has answered yet."""
    answered = {one.answers for one in comments if one.kind is CommentKind.ANSWER}
    return [one for one in comments if one.kind is CommentKind.QUESTION and one.id not in answered]


def question_called(request_id: str, asked: Sequence[str], waiting: Sequence[str], prefix: str) -> str:
    """The question whose id begins so; without one, the only one that waits. Raises `RequestError`.

    `asked` are the ids of all questions about a request, `waiting` of those without an answer.
    """
    found = [one for one in asked if one.startswith(prefix)] if prefix else waiting
    if len(found) == 1 or prefix in found:
        return prefix if prefix in found else found[0]
    if found:
        what = f"begin with {prefix!r}" if prefix else "wait for an answer"
        raise RequestError(f"several questions about request {request_id} {what}: {', '.join(found)}; name one (--to)")
    what = f"question {prefix!r}" if prefix else "question that waits for an answer"
    raise RequestError(f"request {request_id} has no {what}")
