"""`DiscordChannel`: shows notices in a Discord text channel, a thread for every run and a message for every call."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, TypeVar

import discord

from signoff.channels.discord.addressees import Notifying
from signoff.channels.discord.cards import Cards
from signoff.channels.discord.client_events import Listening
from signoff.channels.discord.drawings import DrawingCache
from signoff.channels.discord.mentions import Mentions
from signoff.channels.discord.payloads import holds
from signoff.channels.discord.permissions import check_permissions, text_channel
from signoff.channels.discord.press_actions import PressActions
from signoff.channels.discord.presses import Presses
from signoff.channels.discord.problems import (
    MISSING_ACCESS,
    MISSING_PERMISSIONS,
    OUTSIDE,
    code_of,
    failed,
    is_closed_thread,
    told,
)
from signoff.channels.discord.sheet import MessageSheet
from signoff.channels.discord.slash_commands import Commands
from signoff.channels.discord.threads import Threads, place, read_place, thread_name
from signoff.channels.discord.users import Users
from signoff.channels.discord.waiting_cards import WaitingCards
from signoff.channels.outcome import step_text
from signoff.core.lifecycle import OPEN
from signoff.core.notice import Asked, Notice, Reminder, RunResult, Together
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest
from signoff.core.safe_text import safe_text
from signoff.core.visible_text import visible
from signoff.errors import ChannelFailed, WrongUse
from signoff.ports import Begin, Inbox

T = TypeVar("T")
_log = logging.getLogger("signoff.discord")

_PATIENCE = 50.0
"""Timeout in seconds for one notice, including the waiting that discord.py does itself."""
_PLACES = 2000


class DiscordChannel:
    """Shows notices in threads of one text channel, through a client that the caller runs.

    A place is `THREAD/MESSAGE`. Nothing has to be kept across restarts: the custom ids of buttons say what they are
    about, and a thread or message that was created without being recorded is found again. `listens=False`: it only
    shows, and ignores presses and messages. `notifies=False`: nobody is mentioned.
    """

    def __init__(
        self,
        client: discord.Client,
        *,
        channel: str,
        people: Mapping[str, Actor],
        name: str = "discord",
        begin: Begin | None = None,
        workers: Sequence[str] = (),
        listens: bool = True,
        notifies: bool = True,
    ) -> None:
        self._client = client
        self._listens = listens
        self._notifies = notifies
        self._name = name
        self._channel_id = channel
        self._users = Users(people)
        self._begin = begin
        self._workers = tuple(workers)
        self._listening: Listening | None = None
        self._threads: Threads | None = None
        self._presses: Presses | None = None
        self._commands: Commands | None = None
        self._mentions: Mentions | None = None
        self._drawing = DrawingCache()
        self._waiting: WaitingCards | None = None
        self._places: OrderedDict[str, str] = OrderedDict()
        self._numbers: OrderedDict[str, tuple[int, int]] = OrderedDict()

    @property
    def name(self) -> str:
        return self._name

    async def start(self, inbox: Inbox) -> None:
        """Wait until the client is ready, then listen. Raises `WrongUse` if the channel cannot be used."""
        if self._listening is not None:
            raise WrongUse(f"the channel {self._name} has been started already")
        self._inbox = inbox
        self._notifying = Notifying(inbox, self._users, notifies=self._notifies)
        try:
            await self._start(inbox)
        except BaseException:
            await self.stop()
            raise

    async def _start(self, inbox: Inbox) -> None:
        try:
            self._listening = listening = self._listen()
            await self._client.wait_until_ready()
        except (AttributeError, RuntimeError):  # how discord.py reports it
            raise WrongUse("the Discord client has to be logged in before signoff can listen on it") from None
        with told("look at the channel"):
            channel = await text_channel(self._client, self._channel_id)
        check_permissions(channel)
        self._threads = Threads(self._client, channel)
        self._waiting = WaitingCards(self._client, inbox, self._threads, channel.id, self._places)
        if self._listens:
            cards = Cards(inbox, self._threads, self._places, self._numbers)
            answers = PressActions(inbox, cards, self._drawing, self._refresh)
            self._presses = Presses(inbox, self._users, answers, channel, self._places)
            self._commands = Commands(self._client, inbox, self._users, channel, self._drawing, listening.begin)
            if self._begin is not None and self._workers:
                self._mentions = Mentions(self._client, self._users, channel, self._name, self._begin, self._workers)
            self._commands.begin()
            listening.begin(self._waiting.look())
            listening.to("ready", self._waiting.look)  # a new session: events missed in between are not sent again
        listening.open()

    def _listen(self) -> Listening:
        """Register for all events now, since people may press buttons during the start."""
        listening = Listening(self._client)
        if self._listens:
            listening.to("interaction", self._interaction)
            if self._begin is not None and self._workers:  # otherwise mentions are not for us
                listening.to("message", self._message)
            listening.to("raw_thread_update", self._thread_changed)
        listening.to("raw_message_delete", self._deleted)
        listening.to("raw_bulk_message_delete", self._deleted_many)
        listening.to("raw_thread_delete", self._thread_deleted)
        return listening

    async def _interaction(self, interaction: discord.Interaction) -> None:
        if self._presses is not None:
            await self._presses.heard(interaction)

    async def _message(self, message: discord.Message) -> None:
        if self._mentions is not None:
            await self._mentions.heard(message)

    async def _deleted(self, event: discord.RawMessageDeleteEvent) -> None:
        if self._waiting is not None:
            await self._waiting.deleted(event)

    async def _deleted_many(self, event: discord.RawBulkMessageDeleteEvent) -> None:
        if self._waiting is not None:
            await self._waiting.deleted_many(event)

    async def _thread_deleted(self, event: discord.RawThreadDeleteEvent) -> None:
        if self._waiting is not None:
            await self._waiting.thread_deleted(event)

    async def _thread_changed(self, event: discord.RawThreadUpdateEvent) -> None:
        if self._waiting is not None:
            await self._waiting.thread_changed(event)

    async def stop(self) -> None:
        """Stop listening, after work in progress has finished. Messages stay."""
        listening, self._listening = self._listening, None
        if self._waiting is not None:
            self._waiting.end()
        commands, self._commands = self._commands, None
        if commands is not None:
            commands.leave_tree()
        if listening is not None:
            await listening.stop()
        if commands is not None:
            await commands.end()
        self._presses = self._mentions = self._threads = self._waiting = None

    async def show(self, notice: Notice, at: str = "", beside: str = "") -> str:
        """Post a notice in its thread, or update the message at `at`. Raises `ChannelFailed`."""
        threads, waiting = self._connected()
        sheet = await self._drawing.sheet(notice)
        shown = await self._within(self._put(threads, notice, sheet, at, beside), "show it", at)
        self._note(notice, shown)
        self._log_shown(notice, shown, is_new=shown != at)
        waiting.note(shown, notice.subject, waits=_waits(notice))
        if waiting.was_removed(shown) and _waits(notice):
            raise ChannelFailed(
                "somebody deleted the message right after it was posted", at=place(read_place(shown)[0])
            )
        return shown

    async def remind(self, reminder: Reminder, card: str, at: str = "") -> str:
        """Remind those who may answer now of the message at `card`, in a new message. Raises `ChannelFailed`."""
        threads, _ = self._connected()
        thread, message = read_place(card)
        sheet = await self._notifying.reminder(reminder, threads.link(card), thread)
        putting = threads.put(thread, reminder.subject, sheet, after=message)
        written = await self._within(putting, "remind people", at)
        told = f"people reminded ({reminder.occasion}); thread {thread}, message {written}"
        _log.info("%s: request %s (%s) %s", self._name, *_named(reminder.request), told)
        self._notifying.sent(reminder, sheet, thread)
        return place(thread, written)

    def _connected(self) -> tuple[Threads, WaitingCards]:
        threads, waiting = self._threads, self._waiting
        if threads is None or waiting is None or self._client.is_closed() or not self._client.is_ready():
            raise ChannelFailed("not connected to Discord", whole=True)
        return threads, waiting

    async def _within(self, work: Coroutine[Any, Any, T], doing: str, at: str) -> T:
        """Do something on Discord within the timeout. Failures become `ChannelFailed`."""
        try:
            with told(doing, at=at):
                async with asyncio.timeout(_PATIENCE):
                    return await work
        except (RuntimeError, AttributeError):
            if not self._client.is_closed():
                raise
            raise ChannelFailed("disconnected from Discord", whole=True, at=at) from None  # while it was in progress

    async def _put(self, threads: Threads, notice: Notice, sheet: MessageSheet, at: str, beside: str) -> str:
        thread, message = read_place(at)
        after = read_place(beside)
        home = thread or after[0]
        is_shut = _waits(notice) and threads.is_locked(home)
        if message and not is_shut:
            try:
                if await threads.edit(thread, message, notice.subject, sheet):
                    return at
            except discord.HTTPException as error:
                if not (_waits(notice) and is_closed_thread(error)):
                    raise
            except ChannelFailed:  # the message exists, but its embed was dropped
                if _waits(notice):
                    await self._inbox.gone(notice.subject)
                raise
            if not _waits(notice):
                return at
        if home and not is_shut:
            try:
                below = after[1] if isinstance(notice, RunResult) and after[0] == home else 0
                return place(home, await self._put_anew(threads, home, notice, sheet, after=below))
            except discord.HTTPException as error:
                mendable = isinstance(notice, RunResult) and code_of(error) in (MISSING_ACCESS, MISSING_PERMISSIONS)
                if mendable or not is_closed_thread(error):  # a run's result belongs where it was asked
                    raise
        made = await threads.found_or_made(thread_name(_worker(notice), notice.trail), but=home)
        with told("write to the thread", at=place(made)):
            shown = place(made, await self._put_anew(threads, made, notice, sheet))
        if message and is_shut:
            await threads.leave(thread, message, to=shown)
        return shown

    async def _put_anew(
        self, threads: Threads, thread: int, notice: Notice, sheet: MessageSheet, *, after: int = 0
    ) -> int:
        """Post a message in a thread; a pending call mentions those who may answer."""
        if not (isinstance(notice, Asked) and _waits(notice)):
            return await threads.put(thread, notice.subject, sheet, after=after)
        sheet = await self._notifying.addressed(notice, sheet, thread)
        message = await threads.put(thread, notice.subject, sheet)
        self._notifying.sent(notice, sheet, thread)
        return message

    def _note(self, notice: Notice, shown: str) -> None:
        """Remember what may be needed before the inbox knows it, or for somebody who answers late."""
        if isinstance(notice, Asked):
            self._places[notice.subject] = shown
            self._numbers[notice.subject] = notice.number, notice.of
        if not notice.is_live and self._threads is not None:
            self._threads.forget(notice.subject)
        for noted in (self._places, self._numbers):
            while len(noted) > _PLACES:
                noted.popitem(last=False)

    def _log_shown(self, notice: Notice, shown: str, *, is_new: bool) -> None:
        """Log each step of an approval for the operator. Nothing of a call's content goes into the log."""
        thread, message = read_place(shown)
        where = f"{'posted in' if is_new else 'updated in'} thread {thread}, message {message}"
        match notice:
            case Asked():
                request = notice.request
                _log.info("%s: request %s (%s) %s; %s", self._name, *_named(request), step_text(request), where)
            case Together():
                ids = ", ".join(one.id for one in notice.requests)
                _log.info("%s: requests %s asked at once; %s", self._name, ids, where)
            case _:
                _log.info("%s: run %s is %s; %s", self._name, notice.run, notice.state, where)

    async def _refresh(self, request: ApprovalRequest, seen: discord.Message | None) -> None:
        """Update the message about a request, if it still exists and differs."""
        thread, message = read_place(await self._inbox.where(request.id))
        threads = self._threads
        if threads is None or not message:
            return
        number, of = self._numbers.get(request.id, (1, 1))
        sheet = await self._drawing.sheet(Asked(request=request, number=number, of=of))
        try:
            if seen is None or seen.id != message:
                seen = (await threads.look(thread, {message})).get(message)
            if seen is not None and not holds(seen, sheet):
                await threads.edit(thread, message, request.id, sheet)
        except (ChannelFailed, *OUTSIDE) as error:
            _log.warning("a message could not be updated: %s", failed(error, "edit it"))


def _waits(notice: Notice) -> bool:
    """Whether people are asked something and have to see it."""
    match notice:
        case Asked():
            return notice.request.state in OPEN
        case Together():
            return notice.is_live
        case _:
            return False


def _named(request: ApprovalRequest) -> tuple[str, str]:
    """Return a request's id and tool for a log, with hidden characters visible."""
    return visible(request.id), safe_text(request.tool_name)


def _worker(notice: Notice) -> str:
    if isinstance(notice, RunResult):
        return notice.worker
    request = notice.request if isinstance(notice, Asked) else notice.requests[0]
    return request.worker[0] if request.worker else request.tool_name
