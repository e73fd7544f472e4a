"""Moments as people read them: to the second, with the zone. Which zone is for whoever shows them to say."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from signoff.errors import SignoffError

_MINUTE, _HOUR, _DAY = 60, 3600, 86400

Zone = Callable[[datetime], datetime]
"""The same moment by another clock. `datetime.astimezone` is the clock of this machine."""


def in_utc(moment: datetime) -> datetime:
    """By the clock that is the same everywhere: for the record, for programs, for readers who may be anywhere."""
    return moment.astimezone(UTC)


def moment_text(moment: datetime, zone: Zone = in_utc) -> str:
    """`2031-05-24 18:00:00 CEST`."""
    return f"{zone(moment):%Y-%m-%d %H:%M:%S %Z}"


def iso(moment: datetime | None) -> str | None:
    """A moment for programs: UTC, to the millisecond."""
    return f"{moment.astimezone(UTC).isoformat(timespec='milliseconds')[:-6]}Z" if moment is not None else None


def span(seconds: float) -> str:
    """How long something takes, as people say it: `40 s`, `4 min`, `1 h 20 min`, `3 days`."""
    whole = max(0, int(seconds))
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return f"{whole // _MINUTE} min"
    if whole < 10 * _HOUR and (minutes := whole % _HOUR // _MINUTE):
        return f"{whole // _HOUR} h {minutes} min"
    if whole < 2 * _DAY:
        return f"{whole // _HOUR} h"
    return f"{whole // _DAY} days"


def ago(moment: datetime, at: datetime) -> str:
    seconds = (at - moment).total_seconds()
    return f"{span(seconds)} ago" if seconds >= 1 else "just now"


def ahead(moment: datetime, at: datetime) -> str:
    seconds = (moment - at).total_seconds()
    return f"in {span(seconds)}" if seconds >= 1 else "now"


def error_text(error: SignoffError, zone: Zone) -> str:
    """What an error says, with the moment it names by another clock."""
    text = str(error)
    moment = error.moment
    return text if moment is None else text.replace(moment_text(moment), moment_text(moment, zone))
