"""Which requests a list is to show, and where a page of it begins."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

CHAIN = " > "
"""Between the workers of a chain."""


class ListState(StrEnum):
    """Requests by whether anybody has to do something."""

    WAITING = "waiting"
    """Oldest first: those without an answer, and those whose outcome is unknown."""
    SETTLED = "settled"
    """The newest first."""
    ALL = "all"
    """The newest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFilter:
    """Each that is given has to fit."""

    state: ListState = ListState.WAITING
    tool: str = ""
    worker: str = ""
    """The chain of workers, or one of them."""
    run: str = ""
    assigned: str | None = None
    """Who works on it; empty: nobody does."""
    text: str = ""
    """Part of the title, the tool or the worker. Small and capital letters of ASCII are the same."""


class ListPlace(NamedTuple):
    """Where in a list a request stands."""

    opened_at: datetime
    id: str


def plain_case(text: str) -> str:
    """A text with the capital letters of ASCII made small: what every database does, too."""
    return text.translate(_SMALL)


_SMALL = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
