"""Read the cards in a thread as they are now, to check that people see what they would approve."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import MutableMapping, Sequence

import discord

from signoff.channels.discord.notice_message import digest_of
from signoff.channels.discord.problems import OUTSIDE, failed
from signoff.channels.discord.threads import Threads, read_place, shows
from signoff.core.request import ApprovalRequest
from signoff.ports import Inbox

_log = logging.getLogger("signoff.discord")

_WITHIN = 10.0
"""Timeout in seconds: somebody is waiting."""
_NUMBER = re.compile(r" \((\d{1,4}) of (\d{1,4})\)\Z")
"""The end of a title in a batch, as `notice_message` writes it."""


class Cards:
    """Reads the cards in the threads of one channel."""

    def __init__(
        self,
        inbox: Inbox,
        threads: Threads,
        places: MutableMapping[str, str],
        numbers: MutableMapping[str, tuple[int, int]],
    ) -> None:
        self._inbox = inbox
        self._threads = threads
        self._places = places
        self._numbers = numbers

    async def shown_in(self, thread: int, requests: Sequence[ApprovalRequest]) -> set[str] | None:
        """Return the ids of requests whose card can be read in this thread now; None if Discord does not answer."""
        places = {one.id: await self.place(one.id) for one in requests}
        here = {name: message for name, (where, message) in places.items() if where == thread and message}
        try:
            async with asyncio.timeout(_WITHIN):
                found = await self._threads.look(thread, here.values())
        except OUTSIDE as error:
            _log.warning("the state of thread %s is unknown: %s", thread, failed(error, "look at it"))
            return None
        seen: set[str] = set()
        for one in requests:
            message = found.get(here.get(one.id, 0))
            if message is not None:
                self._learn(one.id, message)
                if shows(message, one.id, digest_of(one)):
                    seen.add(one.id)
        return seen

    async def place(self, request_id: str) -> tuple[int, int]:
        """Return thread and message of a request, including one that was just posted."""
        return read_place(await self._inbox.where(request_id) or self._places.get(request_id, ""))

    def number(self, request_id: str) -> int:
        """Return a request's number within its batch; 0 if it is not known."""
        return self._numbers.get(request_id, (0, 0))[0]

    def _learn(self, request_id: str, message: discord.Message) -> None:
        """Remember the number from a message: another process may have assigned it."""
        told = [_NUMBER.search(embed.title or "") for embed in message.embeds]
        for one in filter(None, told):
            self._numbers.setdefault(request_id, (int(one[1]), int(one[2])))
