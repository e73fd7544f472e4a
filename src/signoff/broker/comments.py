"""Comments on requests: notes, questions back and their answers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from signoff.broker import requests as stored
from signoff.broker.ids import new_id
from signoff.broker.ledger import Ledger
from signoff.core.comment import LONGEST, Comment, CommentKind
from signoff.core.people import Actor
from signoff.core.request import State
from signoff.errors import RequestError
from signoff.ports import Transaction


class BrokerComments:
    """The broker's part about what is said."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def add(
        self,
        request_id: str,
        text: str,
        *,
        by: Actor,
        kind: CommentKind = CommentKind.NOTE,
        answers: str = "",
    ) -> Comment:
        """Say something about a request. A question wants one that waits; an answer names the question it is to."""
        text = text.strip()
        if not text:
            raise RequestError("a comment needs a text")
        if len(text) > LONGEST:
            raise RequestError(f"a comment has at most {LONGEST:,} characters, and this one has {len(text):,}")

        def work(tx: Transaction, now: datetime) -> Comment:
            request = stored.found(tx, request_id)
            if kind is CommentKind.QUESTION and request.state is not State.PENDING:
                raise RequestError(f"request {request.id} is {request.state}: nothing can be asked back any longer")
            if kind is CommentKind.ANSWER:
                questions = {one.id for one in tx.comments.of(request.id) if one.kind is CommentKind.QUESTION}
                if answers not in questions:
                    raise RequestError(f"request {request.id} has no question {answers!r} to be answered")
            comment = Comment(id=new_id(), request=request.id, by=by, at=now, text=text, kind=kind, answers=answers)
            tx.comments.add(comment)
            told = {"comment": comment.id, "what": str(kind), "by": by.name, "via": by.via, "text": text}
            tx.record.append([self._ledger.journal.step(request, "commented", now, **told)])
            return comment

        return await self._ledger.write("comment", work)

    async def of(self, request_id: str) -> Sequence[Comment]:
        """What was said about a request, in order."""
        return await self._ledger.store.read(lambda tx: tx.comments.of(request_id))


def unanswered(comments: Sequence[Comment]) -> list[Comment]:
    """Questions that nobody has answered yet."""
    answered = {one.answers for one in comments}
    return [one for one in comments if one.kind is CommentKind.QUESTION and one.id not in answered]
