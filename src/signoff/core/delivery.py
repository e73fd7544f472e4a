"""The delivery of a notice in a channel: whether it is shown, where, and why it failed."""

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
"""Places by channel, if none was given: each channel finds a place for itself."""


class DeliveryState(StrEnum):
    """The state of a delivery."""

    DUE = "due"
    """It has not been shown yet."""
    SHOWN = "shown"
    FAILED = "failed"
    """The channel gave up: the result of a run could not be shown for a day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One notice in one channel, identified by `channel` and `subject`."""

    channel: str
    subject: Subject
    trail: str
    """`Notice.trail`: deliveries of one trail are made in order."""
    state: DeliveryState = DeliveryState.DUE
    place: str = ""
    """Where it is shown, in the channel's own format. Part of it may be known before it is shown."""
    shown: int = NEVER
    """The version that is shown."""
    live: bool = True
    """Whether it may have to be updated."""
    may_stand: bool = False
    """Whether it may be shown in the channel, although the channel never confirmed it."""
    hopeless: bool = False
    """Whether it failed permanently: somebody has to act first. It does not hold up later deliveries."""
    attempts: int = 0
    """Failed attempts since the last success."""
    since: datetime | None = None
    """Since when it fails."""
    due: datetime | None = None
    """Retry time (backoff): not to be attempted before."""
    problem: str = ""
    """Why the last attempt failed, for people."""
    result: RunResult | None = None
    """The message about a run, which is stored nowhere else."""
