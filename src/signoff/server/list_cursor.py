"""Cursors for pagination: the end of a page as a text that a client sends to get the next one."""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import datetime

from signoff.core.request_filter import ListPlace
from signoff.server.problem import ProblemRaised

LONGEST_CURSOR = 400


def cursor_of(place: ListPlace) -> str:
    """Encode a place as a cursor."""
    return urlsafe_b64encode(json.dumps([place.opened_at.isoformat(), place.id]).encode()).decode()


def place_of_cursor(cursor: str | None) -> ListPlace | None:
    """Decode a cursor; raises `ProblemRaised` if it is invalid."""
    if cursor is None:
        return None
    try:
        opened_at, request_id = json.loads(urlsafe_b64decode(cursor.encode()))
        moment = datetime.fromisoformat(opened_at)
        if moment.tzinfo is None or not isinstance(request_id, str):
            raise ValueError(cursor)
        moment.timestamp()
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ProblemRaised(422, "bad-cursor", "invalid cursor: start with the first page") from error
    return ListPlace(moment, request_id)
