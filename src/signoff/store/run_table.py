"""The tables of runs: where each stands, its messages, and the processes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from signoff.core.codec import PROCESS, RUN
from signoff.core.run import PLAIN_SETUP, DamagedRun, Process, SavedRun, Segment
from signoff.errors import Stale, StoreDamaged
from signoff.store.tables import ALL, Recent, Row, RowReader, Sql, Table, insert, put, span

_COLUMNS = ("id", "state", "body")


class Runs(Table):
    """Saved runs. A run is read at most once per transaction object."""

    def __init__(self, sql: Sql) -> None:
        super().__init__(sql)
        self._known: dict[str, SavedRun] = {}

    def add(self, run: SavedRun) -> None:
        self._write(insert("runs", _COLUMNS), run)

    def put(self, run: SavedRun) -> None:
        """Replace the stored run; raises `Stale` if there is none."""
        if run.id not in self._known and self._body(run.id) is None:
            raise Stale(f"there is no run {run.id}")
        self._write(put("runs", _COLUMNS, "id"), run)

    def _write(self, sql: str, run: SavedRun) -> None:
        # Nested runs are not listed.
        self._run(sql, run.id, "inside" if run.parent else run.state, run_text(run))
        for channel, place in run.places.items():
            self._run(put("origins", ("run", "channel", "place"), "run, channel"), run.id, channel, place)
        self._known[run.id] = run

    def get(self, run_id: str) -> SavedRun | None:
        if (known := self._known.get(run_id)) is not None:
            return known
        body = self._body(run_id)
        return None if body is None else self._loaded(body)

    def _body(self, run_id: str) -> str | None:
        return self._value("select body from {s}runs where id = ?", run_id)

    def _loaded(self, body: str) -> SavedRun:
        run = run_of(body)
        return self._known.setdefault(run.id, run)

    def all(self, *, going: bool = False, limit: int | None = None, before: str = "") -> Sequence[SavedRun]:
        """Newest first, without nested runs; `before` is the id of a run and selects the runs begun before it.

        One that cannot be read is a `DamagedRun`.
        """
        state = "state = 'going'" if going else "state <> 'inside'"
        rows = self._rows(
            f"select id, body from {{s}}runs where {state} "
            "and nr < (select coalesce(max(nr), ?) from {s}runs where id = ?) order by nr desc limit ?",
            *(ALL, before, ALL if limit is None else limit),
        )
        return [self._listed(run_id, body) for run_id, body in rows]

    def _listed(self, run_id: str, body: str) -> SavedRun:
        try:
            run = self._loaded(body)
            if run.id != run_id:
                raise StoreDamaged("holds another run", table="runs", row=str(run_id), field="body")
        except StoreDamaged as wrong:
            return DamagedRun(id=str(run_id)[:200], detail=str(wrong))
        return run

    def like(self, prefix: str, *, limit: int = 5) -> Sequence[str]:
        """Ids that begin with this prefix, including nested runs."""
        sql = "select id from {s}runs where id >= ? and id < ? order by id limit ?"
        return [found for (found,) in self._rows(sql, *span(prefix), limit)]


def run_text(run: SavedRun) -> str:
    text = RUN.to_text(run)
    if run.setup is PLAIN_SETUP:  # another setup may hold values that JSON represents differently
        run_of.note(text, run)
    return text


run_of = Recent(RUN.from_text)
"""Parses what `run_text` wrote."""


class Segments(Table):
    """The messages of saved runs."""

    def add(self, segment: Segment) -> None:
        """Add a segment; does nothing if it exists."""
        parent = _key(segment.parent) if segment.parent else None
        sql = insert("segments", ("id", "parent", "messages", "body"))
        self._run(f"{sql} on conflict (id) do nothing", _key(segment.id), parent, segment.count, segment.body)

    def has(self, segment_id: str) -> bool:
        return bool(self._rows("select 1 from {s}segments where id = ?", _key(segment_id)))

    def chain(self, tip: str) -> Sequence[Segment]:
        """The chain that ends with `tip`, oldest first."""
        rows = self._rows(
            "with recursive history (depth, nr, parent) as ("
            "select 0, nr, parent from {s}segments where id = ? union all "
            "select h.depth + 1, s.nr, s.parent from history h join {s}segments s on s.id = h.parent) "
            "select s.id, s.parent, s.messages, s.body from history h join {s}segments s on s.nr = h.nr "
            "order by h.depth desc",
            _key(tip),
        )
        return [segment_of(row) for row in rows]


_DIGEST = re.compile("[0-9a-f]{64}")


def _key(segment_id: str) -> bytes:
    """A segment's id in half the space: most ids are SHA-256 digests in hexadecimal."""
    return b"\0" + bytes.fromhex(segment_id) if _DIGEST.fullmatch(segment_id) else segment_id.encode()


def _id(key: bytes) -> str:
    key = bytes(key)
    return key[1:].hex() if key[:1] == b"\0" else key.decode()


def _segment(row: Row) -> Segment:
    key, parent, messages, body = row
    return Segment(id=_id(key), parent=_id(parent) if parent is not None else "", count=messages, body=bytes(body))


segment_of = RowReader("segments", {"id": bytes, "parent": bytes | None, "messages": int, "body": bytes}, _segment)


class Processes(Table):
    """Processes that hold claims, runs or channels."""

    def get(self, process_id: str) -> Process | None:
        body = self._value("select body from {s}processes where id = ?", process_id)
        return None if body is None else PROCESS.from_text(body)

    def put(self, process: Process) -> None:
        self._run(put("processes", ("id", "body"), "id"), process.id, PROCESS.to_text(process))
