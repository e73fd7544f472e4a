"""Errors as problem details (RFC 9457): a status, a code for programs, and a sentence for people."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from signoff.core.safe_text import error_line, safe_text
from signoff.errors import (
    AlreadySettled,
    AlreadySpent,
    EditRefused,
    Halted,
    NotEntitled,
    RequestError,
    RunError,
    RunOver,
    RunTaken,
    SignoffError,
    StoreError,
    UnknownRequest,
    UnknownRun,
    WrongFile,
    WrongUse,
)

MEDIA_TYPE = "application/problem+json"

STATUSES: tuple[tuple[type[SignoffError], int, str], ...] = (
    (UnknownRequest, 404, "unknown-request"),
    (UnknownRun, 404, "unknown-run"),
    (AlreadySettled, 409, "already-settled"),
    (AlreadySpent, 409, "already-spent"),
    (NotEntitled, 403, "not-entitled"),
    (EditRefused, 422, "edit-refused"),
    (RequestError, 422, "refused"),
    (RunOver, 409, "run-over"),
    (RunTaken, 409, "run-taken"),
    (RunError, 409, "run-refused"),
    (Halted, 409, "halted"),
    (WrongFile, 422, "wrong-file"),
    (WrongUse, 422, "wrong-use"),
    (StoreError, 503, "store-unavailable"),
)
"""Status and code by error class; the first match counts."""


class ProblemRaised(Exception):
    """An HTTP request that is answered with a problem."""

    def __init__(
        self,
        status: int,
        word: str,
        detail: str,
        problems: Sequence[str] = (),
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.word = word
        self.detail = detail
        self.problems = tuple(problems)
        self.headers = headers or {}

    @property
    def data(self) -> dict[str, Any]:
        """The response body."""
        body: dict[str, Any] = {
            "type": f"urn:signoff:{self.word}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
        }
        return {**body, "problems": list(self.problems)} if self.problems else body


def problem_of(error: SignoffError) -> ProblemRaised:
    """Convert one of our errors. Its text is made safe, because it may contain words of a model."""
    status, word = next(((status, word) for kind, status, word in STATUSES if isinstance(error, kind)), (500, "error"))
    if status == 500:
        return ProblemRaised(500, word, "internal error; see the server's log")
    problems = tuple(safe_text(one) for one in error.problems) if isinstance(error, EditRefused) else ()
    return ProblemRaised(status, word, error_line(error), problems)
