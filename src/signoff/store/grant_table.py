"""The table of remembered answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from signoff.core.codec import GRANT
from signoff.core.grant import Grant
from signoff.errors import Stale
from signoff.store.tables import Documents, Sql, insert


class Grants(Documents[Grant]):
    """Remembered answers (grants)."""

    table, shape = "grants", GRANT
    columns = ("id", "tool", "memory_key", "revoked")

    def __init__(self, sql: Sql) -> None:
        super().__init__(sql)
        self._known: set[str] = set()
        """Ids of grants that are known to be stored. A grant is usually read before it is replaced."""

    def add(self, grant: Grant) -> None:
        self._run(insert("grants", (*self.columns, "body")), *self._row(grant))
        self._known.add(grant.id)

    def put(self, value: Grant) -> None:
        """Replace a grant; raises `Stale` if there is none."""
        if value.id not in self._known and self.get(value.id) is None:
            raise Stale(f"there is no grant {value.id}")
        super().put(value)

    def about(self, tool: str, memory_key: str) -> Sequence[Grant]:
        """Grants that may cover a call: those for exactly these arguments, and matches for the tool; not revoked."""
        return self._where("revoked = 0 and tool = ? and memory_key in (?, '') order by nr", tool, memory_key)

    def all(self, *, revoked: bool = False) -> Sequence[Grant]:
        return self._where("1 = 1 order by nr" if revoked else "revoked = 0 order by nr")

    def _found_by(self, value: Grant) -> Sequence[Any]:
        exact = value.memory_key if value.match is None else ""
        return value.id, value.tool, exact, value.revoked_at is not None

    def _read(self, body: str) -> Grant:
        grant = super()._read(body)
        self._known.add(grant.id)
        return grant
