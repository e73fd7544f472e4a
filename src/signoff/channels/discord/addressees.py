"""Mention the people who may answer a call. Accounts come only from the listed people, never from a call's content."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from signoff.channels.discord.message_text import moment, short_span
from signoff.channels.discord.sheet import MessageSheet
from signoff.channels.discord.status_parts import named
from signoff.channels.discord.users import Users
from signoff.core.card import without_answer
from signoff.core.notice import Asked, Reminder
from signoff.core.request import State
from signoff.core.safe_text import safe_text
from signoff.core.subject import Occasion
from signoff.ports import Inbox

MOST = 50
"""Maximum mentions in one message: it has 2,000 characters, and Discord allows 100 users to be notified."""
_BATCHES = 500
_LONGEST_TOOL = 120
_AT_ONCE = timedelta(minutes=1)
"""Reminders of one batch that are at most this far apart count as one."""
_NAMES = re.compile(r"\A<@\d+>(?: <@\d+>)*(?: and [\d,]+ more)?\n")


class _Notified(NamedTuple):
    """Who was notified of a call, and when the occasion arose."""

    since: datetime | None
    accounts: Sequence[int]


class Notifying:
    """Finds out whom to mention, and remembers who was notified about the same batch."""

    def __init__(self, inbox: Inbox, users: Users, *, notifies: bool) -> None:
        self._inbox = inbox
        self._users = users
        self._notifies = notifies
        self._told: OrderedDict[tuple[object, ...], dict[str, _Notified]] = OrderedDict()
        """By batch and thread, then by call."""

    async def addressed(self, asked: Asked, sheet: MessageSheet, thread: int) -> MessageSheet:
        """Return the first message about a call in a thread, with mentions above it."""
        accounts = await self._accounts(asked, thread)
        return for_these(sheet, accounts, "Asked: ") if accounts else sheet

    async def reminder(self, reminder: Reminder, link: str, thread: int) -> MessageSheet:
        """Return the reminder of a call; `link` leads to the call."""
        accounts = await self._accounts(reminder, thread)
        # An existing reminder keeps its mentions, even if other people may answer by now.
        sheet = MessageSheet(content=f"{_words(reminder)} [The call]({link})", keeps_content=True)
        return for_these(sheet, accounts, "") if accounts else sheet

    def sent(self, notice: Asked | Reminder, sheet: MessageSheet, thread: int) -> None:
        """Record that the message was sent."""
        self._batch(notice, thread)[notice.subject] = _Notified(_since(notice), sheet.mentions)
        while len(self._told) > _BATCHES:
            self._told.popitem(last=False)

    def _batch(self, notice: Asked | Reminder, thread: int) -> dict[str, _Notified]:
        """Return who was notified about the batch in the same thread; a notification elsewhere does not count."""
        claim = notice.request.claim
        why = (notice.occasion, claim.holder if claim else "") if isinstance(notice, Reminder) else ()
        return self._told.setdefault((thread, notice.trail, notice.request.opened_at, *why), {})

    async def _accounts(self, notice: Asked | Reminder, thread: int) -> list[int]:
        """Return the accounts of those who may answer now and have not, in the order of the file.

        People who were just notified of another call of the same batch are left out: one mention is enough.
        """
        if not self._notifies:
            return []
        request, people = notice.request, self._users.accounts()
        entitled = {one.key for one in await self._inbox.entitled(request.id, list(people.values()))}
        if request.state is State.PENDING:
            entitled -= {vote.by.key for vote in request.votes}
        others = {
            account
            for subject, told in self._batch(notice, thread).items()
            if subject != notice.subject and _is_at_once(told.since, _since(notice))
            for account in told.accounts
        }
        accounts = [int(account) for account, person in people.items() if person.key in entitled]
        return [one for one in accounts if one not in others]


def _since(notice: Asked | Reminder) -> datetime | None:
    return notice.since if isinstance(notice, Reminder) else None


def _is_at_once(one: datetime | None, other: datetime | None) -> bool:
    return one == other if one is None or other is None else abs(one - other) <= _AT_ONCE


def _words(reminder: Reminder) -> str:
    request = reminder.request
    tool = short_span(safe_text(request.tool_name), _LONGEST_TOOL)
    if reminder.occasion is Occasion.UNKNOWN:
        return f"**It is unknown whether {tool} ran.** Check, then say what happened."
    until = ""
    if request.deadline is not None:
        until = f" Otherwise {without_answer(request, named)} {moment(request.deadline, 'R')}."
    if reminder.occasion is Occasion.ESCALATED:
        to = named(request.requirement.role or "")
        return f"**Escalated to {to}:** {request.silence}. May {tool} run?{until}"
    return f"**Still waiting:** may {tool} run?{until}"


def for_these(sheet: MessageSheet, accounts: Sequence[int], words: str) -> MessageSheet:
    """Add mentions to a message. Accounts beyond the maximum are only counted."""
    named, more = accounts[:MOST], len(accounts) - MOST
    text = words + " ".join(f"<@{account}>" for account in named) + (f" and {more:,} more" if more > 0 else "")
    return replace(sheet, content=f"{text}\n{sheet.content}".strip(), mentions=tuple(named))


def without_names(content: str) -> str:
    """Remove the leading mentions from a message's text."""
    return _NAMES.sub("", content)
