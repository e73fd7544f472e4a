"""The tables of the audit log: the events, the head of their chain, and the signed checkpoints."""

from __future__ import annotations

from collections.abc import Sequence
from os import urandom

from signoff.core.record import SALT, Checkpoint, Entry, EventDraft, linked
from signoff.errors import RecordBroken
from signoff.store.tables import ALL, Row, Sql, Table, insert, told

_EVENT = ", ".join(Entry._fields)
_APPEND = insert("events", Entry._fields)
HEAD = "select seq, hash from {s}chain"


def one_end(rows: Sequence[Row]) -> tuple[int, str]:
    """Return the head of the hash chain from the rows of the table `chain`.

    Raises `RecordBroken` unless there is exactly one row.
    """
    if len(rows) != 1:
        raise RecordBroken(
            f"the table `chain`, which holds the end of the record, has {len(rows)} rows instead of one: "
            "the store was changed from outside; restore a backup"
        )
    seq, link = rows[0][:2]
    if type(seq) is not int or type(link) is not str:
        raise RecordBroken(
            "the table `chain`, which holds the end of the record, holds values of the wrong type: "
            "the store was changed from outside; restore a backup"
        )
    return seq, link


class Chain:
    """The head of the audit log's hash chain during a batch. It is read once, and written once at the end."""

    def __init__(self, sql: Sql) -> None:
        self._sql = sql
        self._stored: tuple[int, str] | None = None
        self._end: tuple[int, str] | None = None

    @property
    def end(self) -> tuple[int, str]:
        if self._end is None:
            self._stored = self._end = one_end(self._sql.rows(HEAD))
        return self._end

    @end.setter
    def end(self, end: tuple[int, str]) -> None:
        self._end = end

    def start_at(self, seq: int, link: str) -> None:
        """Set the head without a query, for a caller that has already read it."""
        self._stored = self._end = (seq, link)

    def mark(self) -> tuple[int, str] | None:
        """Return the current head, to be passed to `back_to` on a rollback to a savepoint."""
        return self._end

    def back_to(self, mark: tuple[int, str] | None) -> None:
        self._end = mark

    @property
    def has_moved(self) -> bool:
        return self._end is not None and self._end != self._stored

    def save(self, *, always: bool = False) -> None:
        if always or self.has_moved:
            self._sql.run("update {s}chain set seq = ?, hash = ?{noted}", *self.end)


class Record(Table):
    """The audit log: every event, in a hash chain."""

    def __init__(self, sql: Sql, chain: Chain) -> None:
        super().__init__(sql)
        self._chain = chain

    def append(self, drafts: Sequence[EventDraft]) -> None:
        """Append events to the end of the chain."""
        seq, prev = self._chain.end
        for draft in drafts:
            seq += 1
            entry = linked(draft, seq, prev, urandom(SALT * len(draft.body)))
            prev = entry.hash
            self._run(_APPEND, *entry)
        self._chain.end = (seq, prev)

    def head(self) -> tuple[int, str]:
        """Sequence number and hash of the last event; 0 and `START` if there is none."""
        return self._chain.end

    def entries(self, *, after: int = 0, limit: int | None = None, request: str = "", run: str = "") -> Sequence[Entry]:
        """Events in order."""
        conditions, values = list[str](), list[str]()
        if request:
            conditions.append("request <> '' and request = ?")
            values.append(request)
        if run:
            conditions.append("run = ?" if request else "run <> '' and run = ?")
            values.append(run)
        sql = f"select {_EVENT} from {{s}}events where {' and '.join((*conditions, 'seq > ?'))} order by seq limit ?"
        rows = self._rows(sql, *values, after, ALL if limit is None else limit)
        return [_entry(row) for row in rows]

    def touched(self, after: int) -> Sequence[str]:
        """Ids of requests that events after this number are about."""
        rows = self._rows("select request from {s}events where seq > ? and request <> '' order by seq", after)
        return list(dict.fromkeys(told(found) for (found,) in rows))


def _entry(row: Row) -> Entry:
    seq, at, kind, request, run, *rest = row
    return Entry(seq, at, kind, *(told(one) if type(one) is str else one for one in (request, run)), *rest)


_CHECKPOINT = ", ".join(Checkpoint._fields)


class Checkpoints(Table):
    """Signed checkpoints of the audit log."""

    def add(self, checkpoint: Checkpoint) -> None:
        self._run(insert("checkpoints", Checkpoint._fields), *checkpoint)

    def all(self) -> Sequence[Checkpoint]:
        return [Checkpoint(*row) for row in self._rows(f"select {_CHECKPOINT} from {{s}}checkpoints order by nr")]
