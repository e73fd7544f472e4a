"""Filter and pagination of lists of requests."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

CHAIN = " > "
"""The separator between the workers of a chain."""


class ListState(StrEnum):
    """Requests by whether somebody has to act."""

    WAITING = "waiting"
    """Without an answer, or with an unknown outcome; oldest first."""
    SETTLED = "settled"
    """Newest first."""
    ALL = "all"
    """Newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFilter:
    """A filter for requests. All given conditions must match."""

    state: ListState = ListState.WAITING
    tool: str = ""
    worker: str = ""
    """The chain of workers, or one of them."""
    run: str = ""
    assigned: str | None = None
    """Who is working on it; empty: nobody; None: no condition."""
    text: str = ""
    """Part of the title, the tool or the worker. Case-insensitive for ASCII letters."""


class ListPlace(NamedTuple):
    """The position of a request in a list, as a cursor for pagination."""

    opened_at: datetime
    id: str


def plain_case(text: str) -> str:
    """Lowercase ASCII letters only, as every database does, too."""
    return text.translate(_SMALL)


def has_text(wanted: str, *texts: str) -> bool:
    """Whether one of these texts contains the wanted one, as a list of requests is searched."""
    return plain_case(wanted) in plain_case(" ".join(texts))


_SMALL = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
