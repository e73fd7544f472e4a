"""How far a channel came with a notice: whether it is before people, where, and what went wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType

from signoff.core.notice import RunResult
from signoff.core.subject import Subject

NEVER = -1
NOWHERE: Mapping[str, str] = MappingProxyType({})
"""Where something is to be shown, by channel, where nobody said: each channel finds a place for it."""


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
    subject: Subject
    trail: str
    """`Notice.trail`: deliveries of one trail are made in order."""
    state: DeliveryState = DeliveryState.DUE
    place: str = ""
    """Where it stands, as the channel says: only the channel can read it. May be known in part while it is due."""
    shown: int = NEVER
    """The version that stands there."""
    live: bool = True
    """Whether it may have to be brought up to date."""
    may_stand: bool = False
    """Whether something of it may stand in the channel though it was never heard that it does."""
    hopeless: bool = False
    """Whether it failed last in a way that holds nothing else up: somebody has to do something first."""
    attempts: int = 0
    """How often it failed since it last succeeded."""
    since: datetime | None = None
    """Since when it fails."""
    due: datetime | None = None
    """Not to be tried again before."""
    problem: str = ""
    """Why it failed last, in words for people."""
    instead: str = ""
    """The channel that took over."""
    result: RunResult | None = None
    """What there is to tell of a run, which nothing else holds."""
