"""How far a channel came with a notice: whether it is before people, where, and what went wrong."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

NEVER = -1


class DeliveryState(StrEnum):
    """How a delivery stands."""

    DUE = "due"
    """It has not been shown yet."""
    SHOWN = "shown"
    FAILED = "failed"
    """The channel gave up. `instead` says which one took over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One notice in one channel; `channel` and `subject` together are its name."""

    channel: str
    subject: str
    """`Notice.subject`."""
    trail: str
    """`Notice.trail`: deliveries of one trail are made in order."""
    request: str = ""
    """Id of the request it is about, if it is about one."""
    state: DeliveryState = DeliveryState.DUE
    at: str = ""
    """Where it stands, as the channel says: only the channel can read it. May be known in part while it is due."""
    shown: int = NEVER
    """The version that stands there."""
    live: bool = True
    """Whether it may have to be brought up to date."""
    attempts: int = 0
    """How often it failed since it last succeeded."""
    since: datetime | None = None
    """Since when it fails."""
    next_at: datetime | None = None
    """Not to be tried again before."""
    problem: str = ""
    """Why it failed last, in words for people."""
    instead: str = ""
    """The channel that took over."""
    text: str = ""
    """What there is to say, where no request holds it: JSON, in the broker's own format."""
