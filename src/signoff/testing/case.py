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
    """It shows all of a call. A channel where people answer has to."""
    ANSWER = "answer"
    """People answer there."""
    NOTE = "note"
    """A denial may have a reason."""
    EDIT = "edit"
    UPDATE = "update"
    """What was shown is brought up to date when it is settled elsewhere."""
    OUTCOME = "outcome"
    """It shows what came of a call once it ran."""
    TELL = "tell"
    """Whoever answers can be told something, such as that they were late."""
    LONG = "long"
    """It shows long values only to whoever asks for them."""
    OUTAGE = "outage"
    """There is a connection that can fail."""
    SAID = "said"
    """It shows what a run came to."""


class ChannelCase(ABC):
    """A channel, and a person who uses it: `signoff.testing.office.ANA`, in whose name its answers must be given.

    Methods that act return when the channel has handled the action, as far as the person can see.
    """

    lacks: ClassVar[Mapping[Skill, str]] = {}
    """What this channel cannot do, each with the reason."""

    @abstractmethod
    def make(self) -> Channel:
        """A channel as a new process would make it, not started. What people were shown before still stands there."""

    @abstractmethod
    async def seen(self, notice: Notice) -> str:
        """All that a person sees of it there, what is behind buttons included; where it can tell, of this one only."""

    @abstractmethod
    async def dangers(self, notice: Notice) -> Sequence[str]:
        """What of it, as it reached the person's screen, would act or hide there, in words. Nothing: all is inert."""

    async def standing(self, notice: Asked) -> int:
        """In how many places a person could answer it there now."""
        raise NotImplementedError

    async def approve(self, notice: Asked) -> None:
        """Try to approve it, whether that is possible or not."""
        raise NotImplementedError

    async def deny(self, notice: Asked, note: str = "") -> None:
        raise NotImplementedError

    async def edit(self, notice: Asked, args: Mapping[str, Any]) -> None:
        """Try to approve it with these arguments, whole."""
        raise NotImplementedError

    async def open_whole(self, notice: Asked) -> str:
        """Ask for all of it; what is shown then."""
        raise NotImplementedError

    async def told(self) -> Sequence[str]:
        """What the person was told besides, oldest first."""
        return ()

    async def break_connection(self) -> None:
        """From now on nothing reaches the other side."""
        raise NotImplementedError

    async def mend_connection(self) -> None:
        raise NotImplementedError

    def moments(self, moment: datetime) -> Sequence[str]:
        """How a moment may look there."""
        return (f"{moment:%H:%M}",)
