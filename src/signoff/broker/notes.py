"""Calls that nobody was asked about: noted in memory, put on the record with the next change or at the step's end."""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from signoff.core.call import Call
from signoff.core.record import Draft
from signoff.core.verdict import Verdict
from signoff.ports import Transaction

if TYPE_CHECKING:
    from signoff.broker.broker import Broker


class Note(NamedTuple):
    """What happened to a call, as cheaply as it can be kept."""

    kind: str
    at: datetime
    run: str
    call: Call
    args: str
    """As JSON, as they were then: a tool may change what it is given."""
    verdict: Verdict | None
    by: str
    text: str
    secrets: tuple[str, ...]


class Notes:
    """The broker's part about calls that just pass. A list entry on their path; the writer does the rest."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._kept: list[Note] = []

    def add(
        self,
        kind: str,
        call: Call,
        verdict: Verdict | None,
        *,
        run: str = "",
        by: str = "",
        text: str = "",
        secrets: tuple[str, ...] = (),
    ) -> None:
        """Note a step of a call. `secrets` are masked, besides what the broker knows."""
        now, args = self._broker.clock.now(), json.dumps(call.args)
        self._kept.append(Note(kind, now, run, call, args, verdict, by, text, secrets))

    def hand_over(self) -> None:
        """Have what was noted written down, ahead of whatever is written next."""
        if self._kept:
            notes, self._kept = self._kept, []
            self._broker.store.later("record", lambda tx: self._write(tx, notes))

    def _write(self, tx: Transaction, notes: list[Note]) -> None:
        tx.append([self._draft(note) for note in notes])

    def _draft(self, note: Note) -> Draft:
        call = note.call.changed(args=json.loads(note.args))
        return self._broker.journal.passed(
            note.kind, call, note.verdict, note.at, run=note.run, by=note.by, text=note.text, secrets=note.secrets
        )
