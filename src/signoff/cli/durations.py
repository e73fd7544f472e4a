"""Parse durations on the command line."""

from __future__ import annotations

import re
from datetime import timedelta

import click

_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DURATION = re.compile(r"([0-9]{1,9})\s*([smhdw])")


def read_duration(text: str) -> timedelta:
    """Parse a duration: `30s`, `15m`, `2h`, `1d`, `2w`."""
    if (found := _DURATION.fullmatch(text.strip())) is None:
        raise click.UsageError(f"{text!r} is not a time: write 30s, 15m, 2h, 1d or 2w.")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def read_wait(text: str | None) -> timedelta | None:
    """Parse `--wait`; None if it was not given."""
    return None if text is None else read_duration(text)
