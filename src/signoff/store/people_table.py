"""The tables of people: access keys, and deputies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from signoff.core.access import AccessKey, AccessKind
from signoff.core.codec import ACCESS_KEY, DELEGATION
from signoff.core.people import Delegation
from signoff.store.tables import Documents, Table


class AccessKeys(Documents[AccessKey]):
    """Access keys of people and programs."""

    table, shape = "access_keys", ACCESS_KEY
    columns = ("id", "digest", "kind", "holder", "expires_at")
    fixed = ("digest", "kind", "holder")

    def by_digest(self, digest: str) -> AccessKey | None:
        return self._first("digest = ?", digest)

    def all(self, *, kind: AccessKind | None = None, holder: str = "") -> Sequence[AccessKey]:
        """All keys, in the order they were made; all given filters must match."""
        condition = "(? = '' or kind = ?) and (? = '' or holder = ?) order by nr"
        return self._where(condition, *[kind or ""] * 2, *[holder] * 2)

    def forget(self, before: datetime) -> None:
        """Delete keys that expired before this moment."""
        self._run("delete from {s}access_keys where expires_at is not null and expires_at < ?", before)


class Delegations(Table):
    """Delegations: which deputy answers for whom."""

    def add(self, delegation: Delegation) -> None:
        sql = "insert into {s}delegations (since, until, body) values (?, ?, ?)"
        self._run(sql, delegation.since, delegation.until, DELEGATION.to_text(delegation))

    def current(self, now: datetime) -> Sequence[Delegation]:
        """Delegations that are valid now."""
        rows = self._rows("select body from {s}delegations where until > ? and since <= ? order by nr", now, now)
        return [DELEGATION.from_text(body) for (body,) in rows]

    def end(self, absent: str, deputy: str, now: datetime) -> Sequence[Delegation]:
        """End the delegations between these two that are not over, including those that have not begun; return them."""
        rows = self._rows("select nr, body from {s}delegations where until > ? order by nr", now)
        every = [(nr, DELEGATION.from_text(body)) for nr, body in rows]
        found = [(nr, one) for nr, one in every if one.is_between(absent, deputy)]
        for nr, one in found:
            ended = DELEGATION.to_text(replace(one, until=now))
            self._run("update {s}delegations set until = ?, body = ? where nr = ?", now, ended, nr)
        return [one for _, one in found]
