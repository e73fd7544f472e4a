"""Cursors for pagination: the end of a page as a text that a client sends to get the next one."""

from __future__ import annotations

from signoff.core.request_filter import ListPlace
from signoff.server.problem import ProblemRaised
from signoff.views.inbox_view import place_of_cursor

LONGEST_CURSOR = 400


def place_after(cursor: str | None) -> ListPlace | None:
    """Decode a cursor, if there is one; raises `ProblemRaised` if it is invalid."""
    try:
        return place_of_cursor(cursor) if cursor else None
    except ValueError as error:
        raise ProblemRaised(422, "bad-cursor", "invalid cursor: start with the first page") from error
