"""Who is notified of a call: those who may answer it, by the accounts that are on file, and by nothing a call says."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from signoff.channels.discord.sheet import Sheet
from signoff.channels.discord.users import Users
from signoff.core.notice import Asked
from signoff.core.request import ApprovalRequest
from signoff.ports import Desk

MOST = 50
"""Accounts in one message: it has 2,000 characters, and Discord takes 100 that may be notified."""
_BATCHES = 500


class Notifying:
    """Finds out whom a message is for, and remembers who was notified of calls that were asked at once."""

    def __init__(self, desk: Desk, users: Users, *, notifies: bool) -> None:
        self._desk = desk
        self._users = users
        self._notifies = notifies
        self._told: OrderedDict[tuple[str, datetime | None], dict[str, Sequence[int]]] = OrderedDict()
        """Accounts that were notified, by what was asked at once and by the call."""

    async def addressed(self, asked: Asked, sheet: Sheet) -> Sheet:
        """The first message about a call, with whom it is for above it. One mention is enough for a batch."""
        others = {account for call, told in self._batch(asked).items() if call != asked.subject for account in told}
        accounts = [one for one in await self._accounts(asked.request) if one not in others]
        return for_these(sheet, accounts, "Asked: ") if accounts else sheet

    def sent(self, asked: Asked, sheet: Sheet) -> None:
        """The message about a call stands there."""
        if asked.of > 1:
            self._batch(asked)[asked.subject] = sheet.mentions
            while len(self._told) > _BATCHES:
                self._told.popitem(last=False)

    def _batch(self, asked: Asked) -> dict[str, Sequence[int]]:
        if asked.of == 1:
            return {}
        return self._told.setdefault((asked.trail, asked.request.opened_at), {})

    async def _accounts(self, request: ApprovalRequest) -> list[int]:
        """Of those who may answer a request now, in the order of the file."""
        if not self._notifies:
            return []
        people = self._users.accounts()
        entitled = {one.key for one in await self._desk.entitled(request.id, list(people.values()))}
        return [int(account) for account, person in people.items() if person.key in entitled]


def for_these(sheet: Sheet, accounts: Sequence[int], words: str) -> Sheet:
    """A message that notifies these people when it is sent. Those for whom there is no room are counted."""
    named, more = accounts[:MOST], len(accounts) - MOST
    text = words + " ".join(f"<@{account}>" for account in named) + (f" and {more:,} more" if more > 0 else "")
    return replace(sheet, content=f"{text}\n{sheet.content}".strip(), mentions=tuple(named))
