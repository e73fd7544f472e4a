"""Words for people at a terminal: how long ago, until when, and texts that neither move the cursor nor fake a line."""

from __future__ import annotations

import json
import re
import unicodedata
from datetime import UTC, datetime, time, timedelta

from signoff.core.moment import iso, moment_text
from signoff.core.safe_text import printable as safe
from signoff.core.visible_text import visible
from signoff.errors import WrongUse

__all__ = [
    "agent_name",
    "as_json",
    "by_wall_clock",
    "cells",
    "clip",
    "count",
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
_DURATION = re.compile(r"([1-9][0-9]{0,5})\s*(min|[smhdw])")
_SECONDS = {"s": 1, "m": _MINUTE, "min": _MINUTE, "h": _HOUR, "d": _DAY, "w": 7 * _DAY}
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_LONGEST = timedelta(days=3660)
WHEN = "write 45m, 2h, 3d, 1w, tomorrow, a weekday, a date as in 2031-05-24, or 2031-05-24T18:00"


def now() -> datetime:
    return datetime.now(UTC)


def local(moment: datetime | None) -> str:
    """A moment on the clock of whoever reads it, with the zone."""
    return moment_text(moment, datetime.astimezone) if moment is not None else ""


def by_wall_clock(text: str) -> str:
    """A text with the moments that it names by UTC, by the clock of whoever reads it."""
    return _MOMENT.sub(_by_wall_clock, text)


def _by_wall_clock(found: re.Match[str]) -> str:
    try:
        here = datetime.fromisoformat(f"{found[1]}{found[2] or ''}+00:00").astimezone()
    except (ValueError, OverflowError):  # looks like a moment, and is none
        return found[0]
    return f"{here:%Y-%m-%d %H:%M}{found[2] or ''} {here:%Z}"  # whole minutes are between all zones there are


_MOMENT = re.compile(r"\b(\d{4}-\d\d-\d\d \d\d:\d\d)(:\d\d(?:\.\d{1,6})?)? UTC\b")


def short_local(moment: datetime) -> str:
    """The same without the year, for lists of what happened one after the other."""
    return f"{moment.astimezone():%m-%d %H:%M:%S %Z}"


def as_json(value: object) -> str:
    """For programs, on one line; what is not seen is escaped, for it may be printed on a terminal all the same."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if text.isprintable() else "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def when(text: str, at: datetime, *, option: str = "--until") -> datetime:
    """A moment to come: a span from now, a day by its name or date (when it begins, here), or a date and a time."""
    said = text.strip().lower()
    if span_said := _DURATION.fullmatch(said):
        length = timedelta(seconds=int(span_said[1]) * _SECONDS[span_said[2]])
        # Whoever says `2d` means no second of the day: the texts that tell it need none either.
        moment = (at + length).replace(microsecond=0)
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
    if moment - at > _LONGEST:
        raise WrongUse(f"{option} {visible(text)} is more than ten years in the future\n  {WHEN}")
    return moment.astimezone(UTC)


def cells(text: str) -> int:
    """How many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 1 + (unicodedata.east_asian_width(char) in ("W", "F")) for char in text
    )


def clip(text: str, width: int) -> str:
    """A text cut to a width, for lists: nothing is decided there."""
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
    """A sentence in lines no wider than `width`. Long words are broken: the terminal would go on at its left edge."""
    from textwrap import wrap

    return wrap(text, max(20, width), subsequent_indent=indent, break_on_hyphens=False) or [""]


def pad(text: str, width: int) -> str:
    return text + " " * max(0, width - cells(text))


def agent_name(agent: str) -> str:
    """What people call the agent of a kept run: a worker by its name, another by where it is found."""
    return visible(agent.removeprefix("worker:"))


def count(number: int, one: str, many: str = "") -> str:
    """`1 request`, `3 requests`."""
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
