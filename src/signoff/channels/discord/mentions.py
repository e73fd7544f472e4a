"""Start workers from Discord: mentioning the bot in our channel, or in a thread of it, starts a run.

Only messages that mention the bot reach us: Discord withholds the text of all others, and we do not request the
message content intent. A reply to one of our messages is not a mention, since people discuss a call there.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence

import discord

from signoff.channels.discord.message_text import first
from signoff.channels.discord.payloads import SILENT
from signoff.channels.discord.permissions import CREATE_THREADS, NEEDED
from signoff.channels.discord.press_result import shown as said_as
from signoff.channels.discord.problems import OUTSIDE, THREAD_EXISTS, code_of, failed, place_of
from signoff.channels.discord.sheet import CONTENT, size
from signoff.channels.discord.threads import OPEN_FOR, place
from signoff.channels.discord.users import Users
from signoff.core.address import addressed, spoken_name
from signoff.core.redact import Redactor
from signoff.core.visible_text import visible
from signoff.errors import SignoffError
from signoff.ports import Begin, Heard

_log = logging.getLogger("signoff.discord")

_SAID = (discord.MessageType.default, discord.MessageType.reply)
_UNREADABLE = "\0"
"""Stands for a message to the bot's role, which has the bot's name: Discord offers it but withholds the text."""
_NO_THREAD = (
    f"Nothing was started: I cannot create a thread here. That needs the permission {NEEDED[CREATE_THREADS][0]}."
)
_NAME = 60
"""Maximum characters of the message in the name of a new thread."""


class Mentions:
    """Handles messages to the bot, for one channel."""

    def __init__(
        self,
        client: discord.Client,
        users: Users,
        channel: discord.TextChannel,
        name: str,
        begin: Begin,
        workers: Sequence[str],
    ) -> None:
        """`workers`: those that `begin` can start, at least one."""
        self._client = client
        self._users = users
        self._channel = channel
        self._name = name
        self._begin = begin
        self._workers = workers

    async def heard(self, message: discord.Message) -> None:
        """Handle one message, if it mentions the bot where we listen."""
        text = self._said_to_us(message)
        if text is None:
            return
        try:
            if await self._is_here(message):
                await self._see_to(message, text)
        except OUTSIDE as error:
            _log.warning("a message could not be answered: %s", failed(error, "reply"))

    def _said_to_us(self, message: discord.Message) -> str | None:
        mine = self._client.user
        if mine is None or message.author.bot or message.webhook_id is not None or message.type not in _SAID:
            return None
        if message.guild is None or message.guild.id != self._channel.guild.id:
            return None
        role = message.guild.self_role
        us = rf"<@!?{mine.id}>" if role is None else rf"<@!?{mine.id}>|<@&{role.id}>"
        said = re.sub(us, "", message.content)
        if said != message.content:
            return said.strip()
        return _UNREADABLE if role is not None and role in message.role_mentions else None

    async def _is_here(self, message: discord.Message) -> bool:
        """Whether it was sent in our channel or in a thread of it."""
        where: object = message.channel
        if isinstance(where, discord.PartialMessageable):  # a thread that discord.py has not cached
            where = await self._client.fetch_channel(where.id)
        return self._channel.id in (message.channel.id, getattr(where, "parent_id", None))

    async def _see_to(self, message: discord.Message, text: str) -> None:
        by = self._users.known(message.author)
        if by is None:
            await self._reply(message, self._users.stranger(message.author, "nothing is started"))
        elif text == _UNREADABLE:
            await self._reply(message, "Discord does not show me messages to my role: mention the bot itself.")
        elif not text:
            say = "what to do" if len(self._workers) == 1 else f"{spoken_name(self._workers[0])}: what to do"
            await self._reply(message, f"Say what to do: mention me, then `{say}`.")
        elif message.channel.id == self._channel.id and isinstance(whom := addressed(text, self._workers), str):
            await self._reply(message, whom)  # no thread, since nothing is started
        else:
            try:
                thread = await self._thread_of(message, text)
            except discord.Forbidden:
                await self._reply(message, _NO_THREAD)
                return
            heard = Heard(channel=self._name, at=place(thread, message.id), id=str(message.id), by=by, text=text)
            if said := await self._begun(heard):
                # Truncated to one message, with hidden characters visible.
                shown = visible(said, lines=True)[:CONTENT]
                await self._client.get_partial_messageable(thread).send(
                    shown, allowed_mentions=SILENT, suppress_embeds=True
                )

    async def _begun(self, heard: Heard) -> str:
        try:
            return await self._begin(heard)
        except SignoffError as error:
            return f"Nothing was started: {said_as(error)}."
        except Exception as error:
            _log.error("nothing could be started: %s", place_of(error))
            return "signoff has an internal error; see its log. Nothing was started."

    async def _thread_of(self, message: discord.Message, text: str) -> int:
        """Return the thread of the message, or create one from it."""
        if message.channel.id != self._channel.id:
            return message.channel.id
        try:
            made = await message.create_thread(name=_name(text), auto_archive_duration=OPEN_FOR)
        except discord.HTTPException as error:
            if code_of(error) != THREAD_EXISTS:
                raise
            return message.id  # a thread has the id of the message it was started from
        return made.id

    async def _reply(self, message: discord.Message, text: str) -> None:
        await message.reply(text, allowed_mentions=SILENT, mention_author=False)


def _name(text: str) -> str:
    """Return a thread name from a message. A message can be deleted, the name stays, so secrets are masked."""
    redactor = Redactor(avoid=text)
    shown = redactor.text(text).splitlines()[0]  # masked before truncating: half a secret would not be recognised
    line = " ".join(redactor.visible(shown).split())
    return line if size(line) <= _NAME else f"{first(line, _NAME - 1).rstrip()}…"
