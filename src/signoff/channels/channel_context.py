"""What a channel is given when it is built, and a shell around it that hides its secrets."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from signoff.core.notice import Notice, Reminder
from signoff.core.people import Actor
from signoff.core.redact import redact_text
from signoff.errors import ChannelFailed, StoreError, WrongUse
from signoff.ports import Begin, Channel, Inbox, Reminding

T = TypeVar("T")


def _no_link(request_id: str) -> str:
    return ""


@dataclass(frozen=True, kw_only=True)
class ChannelContext:
    """The `context` parameter of what builds a channel, if it has one."""

    name: str
    """The name of its entry. The channel's `name` must be this one."""
    people: Mapping[str, Actor] = field(default_factory=dict[str, Actor])
    """Who may answer, by their account there, or else by name: as the project's file has them at each look."""
    workspace: str = "."
    """The project's directory, as a real path. Relative paths of its keys start from there."""
    link: Callable[[str], str] = _no_link
    """Returns the address of a request's page in the web inbox, by its id. Empty if the file has no `server.url`."""
    workers: tuple[str, ...] = ()
    """The workers that people may start from there."""
    begin: Begin | None = None
    """Starts one of them. None: nobody starts any."""
    listens: bool = True
    """Whether it takes answers. Otherwise another program does, and this one only shows."""
    here: Actor | None = None
    """The person at this terminal."""
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    """The name of the environment variable behind each secret of its keys, for messages."""


def masked_channel(channel: Channel, secrets: tuple[str, ...]) -> Channel:
    """Return the channel, with these secrets masked in its errors: those are shown, logged and stored."""
    if not secrets:
        return channel
    return (
        _MaskedReminding(channel, channel, secrets)
        if isinstance(channel, Reminding)
        else MaskedChannel(channel, secrets)
    )


class MaskedChannel:
    """A channel whose errors hold no secret."""

    def __init__(self, channel: Channel, secrets: tuple[str, ...]) -> None:
        self._channel = channel
        self._secrets = secrets

    @property
    def name(self) -> str:
        return self._channel.name

    @property
    def told(self) -> str:
        """Who it is connected as, for people; empty if it does not say."""
        return str(getattr(self._channel, "told", ""))

    async def start(self, inbox: Inbox) -> None:
        await self._masking(self._channel.start(inbox))

    async def show(self, notice: Notice, at: str = "", beside: str = "") -> str:
        return await self._masking(self._channel.show(notice, at, beside))

    async def stop(self) -> None:
        await self._masking(self._channel.stop())

    async def _masking(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            return await work
        except StoreError:
            raise
        except Exception as error:
            text = str(error)
            if (masked := redact_text(text, secrets=self._secrets)) == text:
                raise
            if isinstance(error, ChannelFailed):
                told = ChannelFailed(masked, again=error.again, whole=error.whole, after=error.after, at=error.at)
            elif isinstance(error, WrongUse):
                told = WrongUse(masked)
            else:
                told = RuntimeError(f"{type(error).__name__}: {masked}")
            raise told from None  # the cause has the secret


class _MaskedReminding(MaskedChannel):
    def __init__(self, channel: Channel, reminding: Reminding, secrets: tuple[str, ...]) -> None:
        super().__init__(channel, secrets)
        self._reminding = reminding

    async def remind(self, reminder: Reminder, card: str, at: str = "") -> str:
        return await self._masking(self._reminding.remind(reminder, card, at))
