"""What the channel contract needs to know about a channel: how to make it, and how a person reads and answers."""

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
    """A denial can have a reason."""
    EDIT = "edit"
    UPDATE = "update"
    """A shown notice is updated when the request is settled elsewhere."""
    OUTCOME = "outcome"
    """It shows the outcome of a call once it ran."""
    TELL = "tell"
    """It can tell the person who answers something, such as that they were late."""
    LONG = "long"
    """It shows long values only on request."""
    OUTAGE = "outage"
    """It has a connection that can fail."""
    SAID = "said"
    """It shows the result of a run."""


class ChannelCase(ABC):
    """A channel and the person who uses it, `signoff.testing.office.ANA`. Answers must be given in that name.

    Methods that act return when the channel has handled the action, as far as the person can see.
    """

    lacks: ClassVar[Mapping[Skill, str]] = {}
    """What this channel cannot do, each with the reason."""
    public: ClassVar[bool] = False
    """Whether anybody can read what it shows. Then it may show no argument of a call."""

    @abstractmethod
    def make(self) -> Channel:
        """Make a channel as a new process would, not started. Notices shown before are still there."""

    @abstractmethod
    async def seen(self, notice: Notice) -> str:
        """All that a person sees of the notice, also behind buttons; only of this notice where possible."""

    @abstractmethod
    async def dangers(self, notice: Notice) -> Sequence[str]:
        """Parts of the notice that would act or be hidden on the person's screen, in words. Empty if all is inert."""

    async def links(self, notice: Asked) -> Sequence[str]:
        """The addresses that stand there with a request, to answer it elsewhere. For a channel without `ANSWER`.

        It is given `Office.link` as the `link` of its context.
        """
        raise NotImplementedError

    async def standing(self, notice: Asked) -> int:
        """In how many places a person could answer it now."""
        raise NotImplementedError

    async def approve(self, notice: Asked) -> None:
        """Try to approve it, whether that is possible or not."""
        raise NotImplementedError

    async def deny(self, notice: Asked, note: str = "") -> None:
        raise NotImplementedError

    async def edit(self, notice: Asked, args: Mapping[str, Any]) -> None:
        """Try to approve it with these arguments, which replace all arguments."""
        raise NotImplementedError

    async def open_whole(self, notice: Asked) -> str:
        """Ask for the whole call; return what is shown then."""
        raise NotImplementedError

    async def told(self) -> Sequence[str]:
        """Other messages that the person got, oldest first."""
        return ()

    async def break_connection(self) -> None:
        """Make the connection fail until `mend_connection`."""
        raise NotImplementedError

    async def mend_connection(self) -> None:
        raise NotImplementedError

    def moments(self, moment: datetime) -> Sequence[str]:
        """The ways a moment may be displayed there."""
        return (f"{moment:%H:%M}",)
