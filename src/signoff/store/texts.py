"""The tables of single texts by name: settings, policies, and replies."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, NamedTuple

from signoff.store.tables import Table, put, told


class _Texts(Table):
    """Texts by name."""

    table: ClassVar[str]
    name: ClassVar[str]
    text: ClassVar[str]
    """The columns of the name and of the text."""

    def get(self, name: str) -> str | None:
        text = self._value(f"select {self.text} from {{s}}{self.table} where {self.name} = ?", name)
        return None if text is None else told(text)

    def put(self, name: str, value: str | None) -> None:
        """Set a text; None removes it."""
        if value is None:
            self._run(f"delete from {{s}}{self.table} where {self.name} = ?", name)
        else:
            self._run(put(self.table, (self.name, self.text), self.name), name, value)


class StoredValues(_Texts):
    """Single values of a store, by name: the halt switch, the secret key."""

    table, name, text = "settings", "name", "value"


class Policies(_Texts):
    """The policies that were in effect when requests were opened, as text, by revision."""

    table, name, text = "policies", "revision", "body"


class KeptReply(NamedTuple):
    """The stored reply to a write, for a client that sends the write twice."""

    asked: str
    """Digest of the request body: a different body under the same idempotency key is an error."""
    status: int
    body: str


class Replies(Table):
    """Replies to writes, by sender and by the idempotency key that the sender chose."""

    def get(self, holder: str, name: str) -> KeptReply | None:
        rows = self._rows("select asked, status, body from {s}replies where holder = ? and name = ?", holder, name)
        if not rows:
            return None
        asked, status, body = rows[0]
        return KeptReply(asked, status, told(body))

    def put(self, holder: str, name: str, reply: KeptReply, at: datetime) -> None:
        sql = put("replies", ("holder", "name", "asked", "status", "body", "at"), "holder, name")
        self._run(sql, holder, name, *reply, at)

    def forget(self, before: datetime) -> None:
        """Delete replies older than this moment."""
        self._run("delete from {s}replies where at < ?", before)
