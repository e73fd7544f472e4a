"""Text helpers for a terminal: times, durations, widths, and escaping of control characters."""

from __future__ import annotations

import json
import re
import unicodedata
from datetime import UTC, datetime, time, timedelta

from signoff.core.counted import counted as count
from signoff.core.moment import LONGEST, iso, moment_text, parse_duration
from signoff.core.safe_text import printable as safe
from signoff.core.visible_text import has_hidden, visible
from signoff.errors import WrongUse
from signoff.views.json_form import to_json

__all__ = [
    "agent_name",
    "as_json",
    "by_wall_clock",
    "cells",
    "clip",
    "count",
    "escaped_json",
    "fold",
    "iso",
    "local",
    "now",
    "pad",
    "safe",
    "short_local",
    "when",
]
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
WHEN = "write 45m, 2h, 3d, 1w, tomorrow, a weekday, a date as in 2031-05-24, or 2031-05-24T18:00"


def now() -> datetime:
    return datetime.now(UTC)


def local(moment: datetime | None) -> str:
    """A moment in local time, with the zone."""
    return moment_text(moment, datetime.astimezone) if moment is not None else ""


def by_wall_clock(text: str) -> str:
    """Replace UTC times in a text by local times."""
    return _MOMENT.sub(_by_wall_clock, text)


def _by_wall_clock(found: re.Match[str]) -> str:
    try:
        here = datetime.fromisoformat(f"{found[1]}{found[2] or ''}+00:00").astimezone()
    except (ValueError, OverflowError):  # looks like a time but is not one
        return found[0]
    return f"{here:%Y-%m-%d %H:%M}{found[2] or ''} {here:%Z}"  # the offset between any two zones is whole minutes


_MOMENT = re.compile(r"\b(\d{4}-\d\d-\d\d \d\d:\d\d)(:\d\d(?:\.\d{1,6})?)? UTC\b")


def short_local(moment: datetime) -> str:
    """A moment in local time without the year, for lists of events."""
    return f"{moment.astimezone():%m-%d %H:%M:%S %Z}"


def as_json(value: object) -> str:
    """A value as JSON on one line, with hidden characters escaped, because it may be printed on a terminal."""
    return escaped_json(to_json(value))


def escaped_json(text: str) -> str:
    r"""The same JSON with hidden characters as `\uXXXX`; one line, as only texts in it can have such characters."""
    return "".join(json.dumps(c)[1:-1] if has_hidden(c) else c for c in text) if has_hidden(text) else text


def when(text: str, at: datetime, *, option: str = "--until") -> datetime:
    """Parse a future moment: a duration from now, a day by name or date (its local beginning), or a date and a time."""
    said = text.strip().lower()
    if (length := parse_duration(said)) is not None:
        # `2d` does not mean an exact second, and texts that show the moment show none.
        moment = (at + min(length, LONGEST + timedelta(days=1))).replace(microsecond=0)
        moment -= timedelta(seconds=moment.second if length >= timedelta(hours=1) else 0)
    elif (day := said.removeprefix("next ")) in _WEEKDAYS or said == "tomorrow":
        here = at.astimezone()
        days = 1 if said == "tomorrow" else (_WEEKDAYS.index(day) - here.weekday() - 1) % 7 + 1
        moment = datetime.combine(here.date() + timedelta(days=days), time.min).astimezone()
    else:
        try:
            moment = datetime.fromisoformat(text.strip()).astimezone()
        except (ValueError, OverflowError, OSError) as error:
            raise WrongUse(f"{option} {visible(text)} is not a time\n  {WHEN}") from error
    if moment <= at:
        raise WrongUse(f"{option} {visible(text)} is in the past: {local(at)}")
    if moment - at > LONGEST:
        raise WrongUse(f"{option} {visible(text)} is more than ten years in the future\n  {WHEN}")
    return moment.astimezone(UTC)


def cells(text: str) -> int:
    """How many terminal columns a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 1 + (unicodedata.east_asian_width(char) in ("W", "F")) for char in text
    )


def clip(text: str, width: int) -> str:
    """Cut a text to a width, for lists in which nothing is decided."""
    if cells(text) <= width:
        return text
    kept, used = "", 1
    for char in text:
        used += cells(char)
        if used > width:
            break
        kept += char
    return f"{kept}…"


def fold(text: str, width: int, indent: str = "") -> list[str]:
    """Wrap a sentence into lines no wider than `width`. Long words are broken; a terminal would drop the indent."""
    from textwrap import wrap

    return wrap(text, max(20, width), subsequent_indent=indent, break_on_hyphens=False) or [""]


def pad(text: str, width: int) -> str:
    return text + " " * max(0, width - cells(text))


def agent_name(agent: str) -> str:
    """The display name of a saved run's agent: a worker's name, or where another agent is found."""
    return visible(agent.removeprefix("worker:"))
