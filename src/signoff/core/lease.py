"""The lease of a channel: which process runs it, and since when it is down."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """The channel is down: nothing can be shown there."""

    since: datetime
    problem: str
    attempts: int = 1
    due: datetime | None = None
    """Retry time (backoff): not to be attempted before."""
    hopeless: bool = False
    """Whether the failure is permanent: somebody has to act first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The process that runs a channel."""

    channel: str
    process: str = ""
    """Id of the process; empty if the lease was released."""
    down: Outage | None = None
