"""Discord, with ana in the guild: the real client library against the stand-in of the service."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

from tests.contracts.channels.ui_case import raw_characters
from tests.discord.reader import acting, read
from tests.discord.service import Answered, Message, Service
from tests.discord.service.pointed import point_at

from signoff.channels.discord.bot import discord_channel
from signoff.channels.discord.custom_id import Press, Verb
from signoff.channels.discord.forms import ARGS, REASON
from signoff.channels.discord.notice_message import digest_of
from signoff.core.notice import Asked, Notice
from signoff.ports import Channel
from signoff.testing import ChannelCase
from signoff.testing.office import ANA, soon

OURS = frozenset({"time"})
"""What acts in a message and is meant to: moments, which each client shows in its own time."""


class DiscordCase(ChannelCase):
    """Ana reads the messages in all threads, and what only she sees."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.ana = service.person("ana")

    def make(self) -> Channel:
        people = {str(self.ana.id): ANA}
        return discord_channel(self.service.token, channel=str(self.service.channel.id), people=people)

    # What there is to see

    async def seen(self, notice: Notice) -> str:
        return "\n".join(_read(message.text) for message in [*self.service.messages(), *self._private()])

    async def dangers(self, notice: Notice) -> Sequence[str]:
        found: list[str] = []
        for message in self.service.messages():
            ours = f"Asked: {self.ana.mention}"
            texts = [message.content.removeprefix(ours), *(one.get("description", "") for one in message.embeds)]
            found += [f"acts as {kind}" for text in texts for kind in acting(text) - OURS]
            found += raw_characters(message.text)
            if message.everyone or any(user.id != self.ana.id for user in message.mentions):
                found.append("mentions somebody")
        return found

    async def told(self) -> Sequence[str]:
        return [_read(message.text) for message in self._private()]

    def moments(self, moment: datetime) -> Sequence[str]:
        return (f"<t:{int(moment.timestamp())}",)

    def _private(self) -> list[Message]:
        everything = list(self.service.state.private.values())
        return sorted((one for one in everything if self.ana.sees(one)), key=lambda one: one.id)

    # What can be done about it

    def _holding(self, custom_id: str) -> list[Message]:
        """Messages in which a button can be pressed."""
        found = [(message, message.child(custom_id)) for message in self.service.messages()]
        return [message for message, child in found if child is not None and not child.get("disabled")]

    async def standing(self, notice: Asked) -> int:
        return len(self._holding(_press(notice, Verb.APPROVE)))

    async def approve(self, notice: Asked) -> None:
        await self._pressed(notice, Verb.APPROVE)

    async def deny(self, notice: Asked, note: str = "") -> None:
        pressed = await self._pressed(notice, Verb.DENY_NOTE if note else Verb.DENY)
        if note:
            sent = await (await pressed.modal()).submit({REASON: note})
            await sent.acknowledged()

    async def edit(self, notice: Asked, args: Mapping[str, Any]) -> None:
        modal = await (await self._pressed(notice, Verb.EDIT)).modal()
        await (await modal.submit({ARGS: json.dumps(args)})).acknowledged()

    async def open_whole(self, notice: Asked) -> str:
        reply = await (await self._pressed(notice, Verb.WHOLE)).reply()
        assert reply.message is not None and reply.is_private
        [file] = reply.message.attachments
        return file.data.decode()

    async def _pressed(self, notice: Asked, verb: Verb) -> Answered:
        button = _press(notice, verb)
        await soon(lambda: bool(self._holding(button)), "there is no such button")
        pressed = await self.ana.press(self._holding(button)[0], button)
        await pressed.acknowledged()
        return pressed

    # What goes wrong

    async def break_connection(self) -> None:
        await self.service.down()

    async def mend_connection(self) -> None:
        await self.service.up()


def _press(notice: Asked, verb: Verb) -> str:
    return Press(verb=verb, request=notice.request.id, digest=digest_of(notice.request)).id


def _read(text: str) -> str:
    """As a client shows it: without the marks of its markdown."""
    return "".join(node.raw if node.kind == "time" else node.seen for node in read(text))


@asynccontextmanager
async def discord_case() -> AsyncIterator[DiscordCase]:
    service = Service().start()
    back = point_at(service.url)
    try:
        yield DiscordCase(service)
    except BaseException as error:
        error.add_note(f"the stand-in's own errors: {service.errors}")
        raise
    finally:
        back()
        service.stop()
    assert service.errors == []
