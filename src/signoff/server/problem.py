"""Errors as problem details (RFC 9457): a status, a code for programs, and a sentence for people."""

from __future__ import annotations

from collections.abc import Sequence
from http import HTTPStatus
from typing import Any

from signoff.core.safe_text import error_line, safe_text
from signoff.errors import EditRefused, SignoffError

MEDIA_TYPE = "application/problem+json"


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
    if error.status == 500:
        return ProblemRaised(500, error.code, "internal error; see the server's log")
    problems = tuple(safe_text(one) for one in error.problems) if isinstance(error, EditRefused) else ()
    return ProblemRaised(error.status, error.code, error_line(error), problems)
