"""Comments on a request while it waits: notes, questions and answers. They decide nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from signoff.core.people import Actor, ActorKind
from signoff.errors import RequestError

LONGEST = 4_000
"""Maximum length of a comment, in characters."""
MOST = 200
"""Maximum number of comments on a request."""


class CommentKind(StrEnum):
    """The kind of a comment."""

    NOTE = "note"
    QUESTION = "question"
    """Asked back: it waits for an answer before the request is decided."""
    ANSWER = "answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comment:
    """One comment. Its text is not safe to show: cards mask secrets in it and escape hidden characters."""

    id: str
    request: str
    by: Actor
    at: datetime
    text: str
    kind: CommentKind = CommentKind.NOTE
    answers: str = ""
    """Id of the question, if it is an answer."""

    @property
    def is_claim(self) -> bool:
        """Whether a model wrote it: nothing checks it."""
        return self.by.kind is ActorKind.MODEL

    @property
    def heading(self) -> str:
        """Who does what: `ana asks back`. Names are not safe to show yet."""
        return f"{self.by} {_VERBS[self.kind]}"


_VERBS = {CommentKind.NOTE: "says", CommentKind.QUESTION: "asks back", CommentKind.ANSWER: "answers"}


def unanswered(comments: Sequence[Comment]) -> list[Comment]:
    """Questions without an answer."""
    answered = {one.answers for one in comments if one.kind is CommentKind.ANSWER}
    return [one for one in comments if one.kind is CommentKind.QUESTION and one.id not in answered]


def question_called(request_id: str, asked: Sequence[str], waiting: Sequence[str], prefix: str) -> str:
    """Find the question whose id starts with `prefix`; without one, the only unanswered one. Raises `RequestError`.

    `asked` are the ids of all questions about a request, `waiting` those of the unanswered ones.
    """
    found = [one for one in asked if one.startswith(prefix)] if prefix else waiting
    if len(found) == 1 or prefix in found:
        return prefix if prefix in found else found[0]
    if found:
        what = f"begin with {prefix!r}" if prefix else "wait for an answer"
        raise RequestError(f"several questions about request {request_id} {what}: {', '.join(found)}; name one (--to)")
    what = f"question {prefix!r}" if prefix else "question that waits for an answer"
    raise RequestError(f"request {request_id} has no {what}")
