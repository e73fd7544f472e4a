"""Which process runs a channel, and since when nothing can be shown there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Down:
    """Nothing can be shown in a channel, whatever it is."""

    since: datetime
    problem: str
    attempts: int = 1
    due: datetime | None = None
    """Not to be tried again before."""
    hopeless: bool = False
    """Whether somebody has to do something first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A channel in the hand of a process."""

    channel: str
    process: str = ""
    """Id of the process; empty where it was given back."""
    backup_for: str = ""
    down: Down | None = None
