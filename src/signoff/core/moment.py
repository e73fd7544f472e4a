"""Moments as people read them: to the second, with the zone. Which zone is for whoever shows them to say."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from signoff.errors import SignoffError

Zone = Callable[[datetime], datetime]
"""The same moment by another clock. `datetime.astimezone` is the clock of this machine."""


def in_utc(moment: datetime) -> datetime:
    """By the clock that is the same everywhere: for the record, for programs, for readers who may be anywhere."""
    return moment.astimezone(UTC)


def moment_text(moment: datetime, zone: Zone = in_utc) -> str:
    """`2031-05-24 18:00:00 CEST`."""
    return f"{zone(moment):%Y-%m-%d %H:%M:%S %Z}"


def error_text(error: SignoffError, zone: Zone) -> str:
    """What an error says, with the moment it names by another clock."""
    text = str(error)
    moment = error.moment
    return text if moment is None else text.replace(moment_text(moment), moment_text(moment, zone))
