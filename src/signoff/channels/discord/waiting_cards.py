"""Watch the messages of pending requests: whether they still exist and can be answered.

A deleted message is posted again, an archived thread is unarchived, and what is pending in a locked thread moves.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Collection, Mapping
from contextlib import suppress

import discord

from signoff.channels.discord.problems import OUTSIDE, failed, is_closed_thread
from signoff.channels.discord.threads import Threads, read_place, together
from signoff.core.request import ApprovalRequest
from signoff.ports import Inbox

_log = logging.getLogger("signoff.discord")

_MESSAGES = 2000
"""Size of the caches."""
_MOST_DELETED = 5
"""How often a deleted message is posted again or moved: somebody who deletes it more often means it."""
_MOST_OPENED = 5
"""How often within `_OPENED_WITHIN` a thread is unarchived: somebody else may archive it as often."""
_OPENED_WITHIN = 3600.0
_PAUSES = (10.0, 60.0, 600.0)
"""Seconds before each retry of checking pending messages, if Discord refused."""
_LATE = 5.0
"""Seconds after which the inbox surely knows of a message that was posted."""


class WaitingCards:
    """Tracks the messages of pending requests in one channel, and has them shown again if nobody could answer them."""

    def __init__(
        self, client: discord.Client, inbox: Inbox, threads: Threads, channel: int, places: Mapping[str, str]
    ) -> None:
        self._client = client
        self._inbox = inbox
        self._threads = threads
        self._channel = channel
        self._places = places
        """Places of requests that were just shown, which the inbox may not know yet."""
        self._standing: OrderedDict[int, tuple[int, str]] = OrderedDict()
        """By message: its thread and its subject."""
        self._removed: OrderedDict[int, None] = OrderedDict()
        """Messages that somebody deleted."""
        self._deletions: OrderedDict[str, int] = OrderedDict()
        """How often that happened, by subject."""
        self._opened: OrderedDict[int, tuple[float, ...]] = OrderedDict()
        """When a thread was unarchived."""
        self._has_learned = False
        self._learning = asyncio.Lock()
        self._looking = asyncio.Lock()
        self._is_over = asyncio.Event()

    def end(self) -> None:
        """Stop checking."""
        self._is_over.set()

    def note(self, at: str, subject: str, *, waits: bool) -> None:
        """Remember the message of a subject while it is pending."""
        thread, message = read_place(at)
        self._standing.pop(message, None)
        if waits:
            self._standing[message] = thread, subject
        for noted in (self._standing, self._removed, self._deletions, self._opened):
            while len(noted) > _MESSAGES:
                noted.popitem(last=False)

    def was_removed(self, at: str) -> bool:
        """Whether somebody deleted the message at this place."""
        return read_place(at)[1] in self._removed

    async def look(self) -> None:
        """Check every message with something pending once, since events may have been missed.

        Goes thread by thread, with one request for most of them. What cannot be checked now is retried.
        """
        async with self._looking:
            await self._learn()
            left = list(dict.fromkeys(thread for thread, _ in self._standing.values()))
            for pause in (*_PAUSES, 0.0):
                left = [one for one in left if not self._is_over.is_set() and not await self._looked_at(one)]
                if not left:
                    return
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._is_over.wait(), pause)

    async def _looked_at(self, thread: int) -> bool:
        """Handle what was deleted, archived or locked in a thread. Returns False if Discord does not answer."""
        messages = {message for message, (where, _) in self._standing.items() if where == thread}
        try:
            found = await self._threads.look(thread, messages)
            is_archived, is_locked = await self._threads.shut(thread)
        except OUTSIDE as error:
            if not is_closed_thread(error):
                _log.warning("it is unknown whether pending requests are still shown: %s", failed(error, "look at it"))
                return False
            await self._gone(thread, None)
            return True
        if missing := messages - set(found):
            await self._gone(thread, missing)
        if is_archived or is_locked:
            await self._make_usable(thread, is_locked=is_locked)
        return True

    # --- events: deleted, archived, locked ---

    async def deleted(self, event: discord.RawMessageDeleteEvent) -> None:
        await self._gone(event.channel_id, {event.message_id})

    async def deleted_many(self, event: discord.RawBulkMessageDeleteEvent) -> None:
        await self._gone(event.channel_id, event.message_ids)

    async def thread_deleted(self, event: discord.RawThreadDeleteEvent) -> None:
        if event.parent_id == self._channel:
            await self._gone(event.thread_id, None)

    async def thread_changed(self, event: discord.RawThreadUpdateEvent) -> None:
        """Handle an archived or locked thread, in which nobody can press anything."""
        state = event.data["thread_metadata"]
        if event.parent_id == self._channel and (state["archived"] or state.get("locked")):
            await self._learn()
            if any(thread == event.thread_id for thread, _ in self._standing.values()):
                await self._make_usable(event.thread_id, is_locked=bool(state.get("locked")))

    async def _make_usable(self, thread: int, *, is_locked: bool) -> None:
        """Unarchive a thread if something is pending in it; if that is not possible, have it asked elsewhere."""
        if not await self._subjects(thread, None):
            return
        if not is_locked:
            if self._is_opened_too_often(thread):
                _log.warning("the thread %s is archived again and again; giving up", thread)
                return
            try:
                await self._threads.open_again(thread)
                return
            except OUTSIDE as error:
                if not is_closed_thread(error):
                    _log.warning("an archived thread could not be reopened: %s", failed(error, "open it again"))
                    return
        await self._gone(thread, None)

    def _is_opened_too_often(self, thread: int) -> bool:
        now = asyncio.get_running_loop().time()
        recent = tuple(at for at in self._opened.get(thread, ()) if now - at < _OPENED_WITHIN)
        self._opened[thread] = (*recent, now)[-_MOST_OPENED:]
        return len(recent) >= _MOST_OPENED

    # --- showing again what is gone ---

    async def _gone(self, thread: int, messages: Collection[int] | None) -> None:
        """Have pending requests shown again whose messages in a thread (all, if None) are gone or unusable."""
        if not self._may_be_ours(thread):
            return
        self._removed.update(dict.fromkeys(messages or ()))
        for subject in await self._subjects(thread, messages):
            shown = read_place(await self._inbox.where(subject) or await self._written(subject))
            if shown[0] == thread and (messages is None or shown[1] in messages):
                await self._show_anew(subject)

    async def _subjects(self, thread: int, messages: Collection[int] | None) -> list[str]:
        """Return the pending subjects of these messages of a thread, or of all."""
        await self._learn()
        standing = [
            subject
            for message, (where, subject) in self._standing.items()
            if where == thread and (messages is None or message in messages)
        ]
        if not standing:
            return []
        waiting = {request.id for request in await self._open()}
        return [one for one in dict.fromkeys(standing) if one in waiting or one.startswith(together(""))]

    async def _open(self) -> list[ApprovalRequest]:
        """Return all requests that need a person: pending, or with an unknown outcome."""
        return [*await self._inbox.pending(), *await self._inbox.unknown()]

    def _may_be_ours(self, place_id: int) -> bool:
        """Whether we may have posted there. Most deletions in a server are in other channels."""
        where = self._client.get_channel(place_id)
        if where is None:  # an archived or deleted thread
            return True
        parent = where.parent_id if isinstance(where, discord.Thread) else 0
        return parent == self._channel or any(place_id == thread for thread, _ in self._standing.values())

    async def _learn(self) -> None:
        """Load, once, the places of what other processes have shown."""
        async with self._learning:
            if self._has_learned:
                return
            for request in await self._open():
                for subject in (request.id, together(request.id)):
                    thread, message = read_place(await self._inbox.where(subject))
                    if message:
                        self._standing.setdefault(message, (thread, subject))
            self._has_learned = True

    async def _written(self, subject: str) -> str:
        """Return the place of a message that was just posted, once the inbox knows it; empty if it does not in time."""
        if subject not in self._places:
            return ""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LATE):
                while not (at := await self._inbox.where(subject)):
                    await asyncio.sleep(_LATE / 50)
                return at
        return ""

    async def _show_anew(self, subject: str) -> None:
        times = self._deletions[subject] = self._deletions.get(subject, 0) + 1
        if times <= _MOST_DELETED:
            await self._inbox.gone(subject)
        else:
            _log.warning("the message about %s was deleted, or its thread closed, %d times; giving up", subject, times)
