"""What is said about a request while it waits: notes, questions back, and their answers. None of it decides."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from signoff.core.people import Actor

LONGEST = 4_000
"""Characters of a comment."""


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
