"""Calls that nobody was asked about: buffered, and put on the record with the next change or at the end of the step."""

from __future__ import annotations

import json
from datetime import datetime
from typing import NamedTuple

from signoff.broker.ledger import Ledger
from signoff.core.call import Call
from signoff.core.grant import Grant
from signoff.core.record import EventDraft
from signoff.core.verdict import Verdict
from signoff.ports import Transaction


class _Step(NamedTuple):
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
    grant: str
    secrets: tuple[str, ...]


class AuditBuffer:
    """The broker's part about calls that just pass. A list entry on their path; the writer does the rest."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._steps: list[_Step] = []

    def add(
        self,
        kind: str,
        call: Call,
        verdict: Verdict | None,
        *,
        run: str = "",
        by: str = "",
        text: str = "",
        grant: Grant | None = None,
        secrets: tuple[str, ...] = (),
    ) -> None:
        """Add a step of a call. `grant` is the remembered answer it runs on. `secrets` are masked, besides what the
        broker knows."""
        now, args = self._ledger.now(), json.dumps(call.args)
        name, by = (grant.id, by or grant.by) if grant is not None else ("", by)
        self._steps.append(_Step(str(kind), now, run, call, args, verdict, by, text, name, secrets))

    def flush(self) -> None:
        """Have what is buffered written down, ahead of whatever is written next."""
        if self._steps:
            steps, self._steps = self._steps, []
            self._ledger.store.later("record", lambda tx: self._write(tx, steps))

    def _write(self, tx: Transaction, steps: list[_Step]) -> None:
        tx.record.append([self._draft(step) for step in steps])

    def _draft(self, step: _Step) -> EventDraft:
        call = step.call.changed(args=json.loads(step.args))
        return self._ledger.journal.passed(
            step.kind,
            call,
            step.verdict,
            step.at,
            run=step.run,
            by=step.by,
            text=step.text,
            grant=step.grant,
            secrets=step.secrets,
        )
