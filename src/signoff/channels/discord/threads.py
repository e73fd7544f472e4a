"""The threads of one Discord channel: threads are found by name, and messages in them by their subject."""

from __future__ import annotations

import hashlib
import logging
import re
from collections import OrderedDict
from collections.abc import Collection
from contextlib import suppress

import discord

from signoff.channels.discord.addressees import without_names
from signoff.channels.discord.custom_id import Verb
from signoff.channels.discord.message_text import first
from signoff.channels.discord.payloads import is_framed, presses_in, to_edit, to_send
from signoff.channels.discord.problems import (
    OUTSIDE,
    THREAD_ARCHIVED,
    UNKNOWN_MESSAGE,
    code_of,
    failed,
)
from signoff.channels.discord.sheet import MessageSheet, size
from signoff.core.subject import Subject, SubjectKind
from signoff.core.visible_text import visible
from signoff.errors import ChannelFailed

_log = logging.getLogger("signoff.discord")

_THREADS = 500
"""Size of the cache of threads; a thread that was dropped is read again."""
_MESSAGES = 100
_NAME = 100
"""Maximum characters of a thread's name on Discord."""
OPEN_FOR = 10080
"""Minutes of inactivity until Discord archives a thread: the longest it offers."""
_NONCE = 25
_MOST_DELETED = 10
"""How often one message is sent again if it is deleted within the minutes in which Discord remembers its nonce."""
_LAST_LINE = re.compile(r"request ([A-Za-z0-9_-]{1,40}) · ")
"""As `notice_message.footer_of` writes it."""


def place(thread: int, message: int | None = None) -> str:
    """Return a place: a thread, and the message in it if there is one."""
    return f"{thread}/{message or ''}"


def read_place(at: str) -> tuple[int, int]:
    """Parse a place into thread and message; 0 for a missing part."""
    thread, _, message = at.partition("/")
    return int(thread) if thread.isdecimal() else 0, int(message) if message.isdecimal() else 0


def link_to(guild: int, at: str) -> str:
    """Return the URL of the thread or message at `at`."""
    thread, message = read_place(at)
    return f"https://discord.com/channels/{guild}/{thread}/{message or ''}".rstrip("/")


def thread_name(worker: str, trail: str) -> str:
    """Return the name of the thread for a trail: stable and unique."""
    shown = visible(trail)
    if size(shown) > _NAME // 2:
        shown = f"{first(shown, _NAME // 4)}…{hashlib.sha256(trail.encode()).hexdigest()[:12]}"
    return f"{first(visible(worker), _NAME - size(shown) - 3)} · {shown}".strip()


class Threads:
    """Our messages in the threads of one text channel.

    A message may have been sent without being recorded: the process crashed, or the reply was lost. So a thread's
    history is read before this process first sends to it, and again after a send failed.
    """

    def __init__(self, client: discord.Client, channel: discord.TextChannel) -> None:
        self._client = client
        self._channel = channel
        self._known: OrderedDict[int, dict[str, int]] = OrderedDict()
        self._deleted: dict[str, str] = {}
        """By subject: the id of the message that was deleted last, or the nonce it was sent with."""

    async def found_or_made(self, name: str, *, but: int = 0) -> int:
        """Return our open thread with this name, other than `but`, or create one."""
        mine = self._client.user
        for thread in await self._channel.guild.active_threads():
            ours = thread.parent_id == self._channel.id and mine is not None and thread.owner_id == mine.id
            if ours and thread.name == name and thread.id != but and not thread.locked:
                if not await self._began_with_words(thread.id):
                    return thread.id
        made = await self._channel.create_thread(
            name=name, type=discord.ChannelType.public_thread, auto_archive_duration=OPEN_FOR
        )
        self._remember(made.id, {})
        return made.id

    async def _began_with_words(self, thread: int) -> bool:
        """Whether a thread was started from somebody's message: then they chose its name, which may be any.

        Such a thread has the id of that message, which may be deleted, and its first entry is a starter message that
        stays.
        """
        with suppress(discord.NotFound):
            await self._channel.fetch_message(thread)
            return True
        async for message in self._in(thread).history(limit=1, oldest_first=True):
            return message.type is discord.MessageType.thread_starter_message
        return False

    async def put(self, thread: int, subject: str, sheet: MessageSheet, *, after: int = 0) -> int:
        """Update the message about `subject` in a thread, or send a new one. Returns its id.

        A message that does not name its subject is found by its text, if it comes `after` a known message.
        """
        known = await self._read(thread)
        there = known.get(subject) or (known.get(_words(sheet.content), 0) if after else 0)
        if there > after and await self.edit(thread, there, subject, sheet):
            known[subject] = there
            return there
        try:
            sent = await self._send(thread, subject, sheet)
        except BaseException:
            self._known.pop(thread, None)  # it may have arrived
            raise
        known[subject] = sent.id
        _check_framed(thread, sent, sheet)
        return sent.id

    async def _send(self, thread: int, subject: str, sheet: MessageSheet) -> discord.Message:
        """Send a new message. If it was sent before and deleted since, Discord refuses it, and a new nonce is used."""
        for _ in range(_MOST_DELETED):
            nonce = self._nonce(thread, subject)
            try:
                return await self._in(thread).send(nonce=nonce, **to_send(sheet))
            except discord.NotFound as error:
                if code_of(error) != UNKNOWN_MESSAGE:
                    raise
                self._deleted[subject] = nonce
        raise ChannelFailed("somebody deletes the message every time it is posted", at=place(thread))

    async def edit(self, thread: int, message: int, subject: str, sheet: MessageSheet) -> bool:
        """Replace the content of a message. Returns False if it no longer exists."""
        partial = self._in(thread).get_partial_message(message)
        try:
            try:
                edited = await partial.edit(**to_edit(sheet))
            except discord.HTTPException as error:
                if code_of(error) != THREAD_ARCHIVED:
                    raise
                await self.open_again(thread)
                edited = await partial.edit(**to_edit(sheet))
            if edited.flags.suppress_embeds and is_framed(sheet):  # a moderator hid the embed
                edited = await edited.edit(suppress=False, **to_edit(sheet))
        except discord.NotFound:  # the message, or the whole thread
            self._known.get(thread, {}).pop(subject, None)
            self._deleted[subject] = str(message)
            return False
        _check_framed(thread, edited, sheet)
        return True

    async def look(self, thread: int, messages: Collection[int]) -> dict[int, discord.Message]:
        """Return messages of a thread by id; those that no longer exist are left out."""
        found: dict[int, discord.Message] = {}
        if not messages:
            return found
        before_them = discord.Object(min(messages) - 1)
        async for one in self._in(thread).history(limit=_MESSAGES, after=before_them, oldest_first=True):
            found[one.id] = one
        for missing in sorted(set(messages) - set(found)):
            if missing > max(found, default=0):  # there are more messages in between than were read
                with suppress(discord.NotFound):
                    found[missing] = await self._in(thread).fetch_message(missing)
        return {one: found[one] for one in messages if one in found}

    def is_locked(self, thread: int) -> bool:
        """Whether a thread is known to be locked: then nobody can press anything there, even those who may write."""
        found = self._client.get_channel(thread)
        return isinstance(found, discord.Thread) and found.locked

    async def shut(self, thread: int) -> tuple[bool, bool]:
        """Return whether a thread is archived, and whether it is locked."""
        found = self._client.get_channel(thread) or await self._client.fetch_channel(thread)
        return (found.archived, found.locked) if isinstance(found, discord.Thread) else (False, False)

    async def leave(self, thread: int, message: int, *, to: str) -> None:
        """Replace a message by a link to where its question has moved, if it can be edited."""
        moved = MessageSheet(content=f"This thread is locked, so the question has moved: {self.link(to)}")
        try:
            await self._in(thread).get_partial_message(message).edit(**to_edit(moved))
        except OUTSIDE as error:
            _log.warning("the old message could not be updated: %s", failed(error, "edit it"))

    def link(self, at: str) -> str:
        """Return the URL of a message or a thread."""
        return link_to(self._channel.guild.id, at)

    def forget(self, subject: str) -> None:
        """Drop what is remembered about a subject that is finished."""
        self._deleted.pop(subject, None)

    async def open_again(self, thread: int) -> None:
        """Unarchive a thread."""
        found = await self._client.fetch_channel(thread)
        if isinstance(found, discord.Thread):
            await found.edit(archived=False)

    async def _read(self, thread: int) -> dict[str, int]:
        if thread in self._known:
            self._known.move_to_end(thread)
            return self._known[thread]
        mine = self._client.user
        known: dict[str, int] = {}
        async for message in self._in(thread).history(limit=_MESSAGES):
            if mine is not None and message.author.id == mine.id:
                for subject in subjects_in(message):
                    known.setdefault(subject, message.id)
        self._remember(thread, known)
        return known

    def _remember(self, thread: int, known: dict[str, int]) -> None:
        self._known[thread] = known
        while len(self._known) > _THREADS:
            self._known.popitem(last=False)

    def _in(self, thread: int) -> discord.PartialMessageable:
        return self._client.get_partial_messageable(thread, guild_id=self._channel.guild.id)

    def _nonce(self, thread: int, subject: str) -> str:
        """Return a nonce, stable for one message so that Discord accepts it once; another one after a deletion.

        For Discord a nonce is shared by all threads, so a message that moves to another thread needs a new one too.
        """
        about = f"{thread}\n{subject}\n{self._deleted.get(subject, '')}"
        return hashlib.sha256(about.encode()).hexdigest()[:_NONCE]


def together(first: str) -> str:
    """Return the subject of a batch, by the id of its first request; see `core.notice.Together`."""
    return str(Subject(SubjectKind.BATCH, first))


def _check_framed(thread: int, message: discord.Message, sheet: MessageSheet) -> None:
    """Raise `ChannelFailed` if Discord dropped the embed, which it does silently while keeping the buttons."""
    if is_framed(sheet) and not message.embeds and not message.flags.suppress_embeds:
        raise ChannelFailed(
            "the preview of a call is not shown: that needs the permission Embed Links",
            again=False,
            at=place(thread, message.id),
        )


def shows(message: discord.Message, request_id: str, digest: str) -> bool:
    """Whether a message shows the card of a request with these arguments, and nobody hid the embed."""
    if message.flags.suppress_embeds or not any(embed.description for embed in message.embeds):
        return False
    presses = [press for press in presses_in(message) if press.request == request_id]
    return any(press.digest and digest.startswith(press.digest) for press in presses)


def subjects_in(message: discord.Message) -> set[str]:
    """Return a message's subjects, from its buttons or its footer; otherwise a hash of its text."""
    of_all = (Verb.ALL_APPROVE, Verb.ALL_DENY)
    found = {together(press.request) if press.verb in of_all else press.request for press in presses_in(message)}
    for embed in message.embeds:
        about = _LAST_LINE.match(embed.footer.text or "")
        found |= {about[1]} if about else set()
    return found or {_words(message.content)}


def _words(content: str) -> str:
    return f"words:{hashlib.sha256(without_names(content).strip().encode()).hexdigest()}"
