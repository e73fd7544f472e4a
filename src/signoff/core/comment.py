"""What is said about a request while it waits: notes, questions back, and their answers. None of it decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from signoff.core.people import Actor, ActorKind

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
