"""What the contract needs to know about a channel: how to make one, and how a person reads and answers there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar

from signoff.core.notice import Asked, Notice
from signoff.ports import Channel


class Skill(StrEnum):
    """An optional feature of a channel. A case names those it lacks, and why."""

    WHOLE = "whole"
    """It shows all of a call. A channel where people answer must."""
    ANSWER = "answer"
    """People answer there."""
    NOTE = "note"
    """A denial may have a reason."""
    EDIT = "edit"
    UPDATE = "update"
    """It updates what it has shown when a request is settled elsewhere."""
    OUTCOME = "outcome"
    """It shows the outcome of a call."""
    TELL = "tell"
    """The person who answers can be told something, such as that the answer was late."""
    LONG = "long"
    """It shows long values only to people who ask for them."""
    OUTAGE = "outage"
    """There is a connection that can fail."""
    SAID = "said"
    """It shows the result of a run."""


class ChannelCase(ABC):
    """A channel, and a person who uses it: `signoff.testing.office.ANA`, in whose name its answers must be given.

    Methods that act return when the channel has handled the action, as far as the person can see.
    """

    lacks: ClassVar[Mapping[Skill, str]] = {}
    """What this channel cannot do, each with the reason."""

    @abstractmethod
    def make(self) -> Channel:
        """A channel as a new process would create it, not started. What was shown before is still there."""

    @abstractmethod
    async def seen(self, notice: Notice) -> str:
        """Everything a person sees of the notice, including what is behind buttons; if possible, of this one only."""

    @abstractmethod
    async def dangers(self, notice: Notice) -> Sequence[str]:
        """What in the shown notice would act or hide on the person's screen, in words. Empty: all of it is inert."""

    async def standing(self, notice: Asked) -> int:
        """In how many places a person could answer it now."""
        raise NotImplementedError

    async def approve(self, notice: Asked) -> None:
        """Try to approve it, whether that is possible or not."""
        raise NotImplementedError

    async def deny(self, notice: Asked, note: str = "") -> None:
        raise NotImplementedError

    async def edit(self, notice: Asked, args: Mapping[str, Any]) -> None:
        """Try to approve it with these arguments, which replace all of its own."""
        raise NotImplementedError

    async def open_whole(self, notice: Asked) -> str:
        """Open the full call; returns what is shown then."""
        raise NotImplementedError

    async def told(self) -> Sequence[str]:
        """Other messages that the person got, oldest first."""
        return ()

    async def break_connection(self) -> None:
        """Cut the connection: from now on nothing reaches the service."""
        raise NotImplementedError

    async def mend_connection(self) -> None:
        raise NotImplementedError

    def moments(self, moment: datetime) -> Sequence[str]:
        """The forms in which the channel may show a time."""
        return (f"{moment:%H:%M}",)
