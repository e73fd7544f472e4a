"""Parse durations on the command line."""

from __future__ import annotations

from datetime import timedelta

import click

from signoff.core.moment import LONGEST, parse_duration


def read_duration(text: str) -> timedelta:
    """Parse a duration: `30s`, `15m`, `2h`, `1d`, `2w`."""
    if (length := parse_duration(text)) is None:
        raise click.UsageError(f"{text!r} is not a time: write 30s, 15m, 2h, 1d or 2w.")
    if length > LONGEST:
        raise click.UsageError(f"{text!r} is longer than ten years.")
    return length


def read_wait(text: str | None) -> timedelta | None:
    """Parse `--wait`; None if it was not given."""
    return None if text is None else read_duration(text)
