"""Comments on requests: notes, questions back and their answers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from signoff.broker import requests as stored
from signoff.broker.ids import new_id
from signoff.broker.ledger import Ledger
from signoff.core.comment import LONGEST, MOST, Comment, CommentKind, question_called, unanswered
from signoff.core.lifecycle import OPEN, Commented
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest, State
from signoff.errors import RequestError
from signoff.ports import Transaction


class BrokerComments:
    """The part of the broker for comments."""

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
        """Add a comment. A question needs a pending request; an answer names the question. Raises `RequestError`."""
        text = text.strip()
        if not text:
            raise RequestError("a comment needs a text")
        if len(text) > LONGEST:
            raise RequestError(f"a comment has at most {LONGEST:,} characters, and this one has {len(text):,}")

        def work(tx: Transaction, now: datetime) -> Comment:
            request = stored.found(tx, request_id)
            if kind is CommentKind.QUESTION and request.state is not State.PENDING:
                raise RequestError(f"request {request.id} is {request.state}: no more questions can be asked")
            before = tx.comments.of(request.id)
            if len(before) >= MOST:
                raise RequestError(f"request {request.id} has {MOST} comments, which is the limit")
            if kind is CommentKind.ANSWER:
                if answers not in {one.id for one in before if one.kind is CommentKind.QUESTION}:
                    raise RequestError(f"request {request.id} has no question {answers!r} to be answered")
            comment = Comment(id=new_id(), request=request.id, by=by, at=now, text=text, kind=kind, answers=answers)
            tx.comments.add(comment)
            if request.state in OPEN:  # channels that show the request update it
                stored.put(tx, request, Commented(), now)
            told = {"comment": comment.id, "what": str(kind), "by": by.name, "via": by.via, "text": text}
            tx.record.append([self._ledger.journal.step(request, "commented", now, **told)])
            return comment

        return await self._ledger.write("comment", work)

    async def of(self, request_id: str) -> Sequence[Comment]:
        """List the comments on a request, in order."""
        return await self._ledger.store.read(lambda tx: tx.comments.of(request_id))

    async def question_meant(self, request_id: str, prefix: str = "") -> str:
        """Return the id of the question that starts with `prefix`; without one, the only open question.

        Raises `RequestError`.
        """
        said = await self.of(request_id)
        asked = [one.id for one in said if one.kind is CommentKind.QUESTION]
        return question_called(request_id, asked, [one.id for one in unanswered(said)], prefix)


def with_comments(tx: Transaction, request: ApprovalRequest) -> ApprovalRequest:
    """Return a request with its comments."""
    if not request.version:  # a comment would have raised the version
        return request
    return request.changed_to(comments=tuple(tx.comments.of(request.id)))
