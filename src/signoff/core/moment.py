"""Timestamps and durations as people read and write them. The caller chooses the time zone."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from signoff.errors import SignoffError

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_UNITS = {"s": "seconds", "m": "minutes", "min": "minutes", "h": "hours", "d": "days", "w": "weeks"}
UNIT = rf"\s*(?:{'|'.join(sorted(_UNITS, key=len, reverse=True))})"
"""What follows the number, as a regular expression."""
LONGEST = timedelta(days=3660)
"""Ten years: nobody waits longer, and dates do not reach much farther."""
_TOO_LONG = 2 * LONGEST
_DURATION = re.compile(rf"([0-9]{{1,12}})({UNIT})", re.ASCII)

Zone = Callable[[datetime], datetime]
"""Converts a moment to a time zone. `datetime.astimezone` uses the zone of this machine."""


def in_utc(moment: datetime) -> datetime:
    """Convert to UTC: for the audit log, for programs, and for readers who may be anywhere."""
    return moment.astimezone(UTC)


def moment_text(moment: datetime, zone: Zone = in_utc) -> str:
    """Format a moment to the second, with its zone: `2031-05-24 18:00:00 CEST`."""
    return f"{zone(moment):%Y-%m-%d %H:%M:%S %Z}"


def iso(moment: datetime | None) -> str | None:
    """Format a moment for programs: UTC, to the millisecond."""
    return f"{moment.astimezone(UTC).isoformat(timespec='milliseconds')[:-6]}Z" if moment is not None else None


def span(seconds: float) -> str:
    """Format a duration for people: `40 s`, `4 min`, `1 h 20 min`, `3 days`."""
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
    """The text of an error, with the moment in it converted to another time zone."""
    text = str(error)
    moment = error.moment
    return text if moment is None else text.replace(moment_text(moment), moment_text(moment, zone))


def parse_duration(text: str) -> timedelta | None:
    """Parse a whole number with its unit, as `30s`, `15m`, `2h`, `1d`, `2w`; None if it is something else."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        return None
    unit = timedelta(**{_UNITS[found[2].strip()]: 1})
    return min(int(found[1]), _TOO_LONG // unit) * unit
