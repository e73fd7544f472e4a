"""Buffer audit events of calls that nobody was asked about, until the next change or the end of the step."""

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
    """What happened to a call, stored as cheaply as possible."""

    kind: str
    at: datetime
    run: str
    call: Call
    args: str
    """As JSON, at that moment: a tool may change its arguments later."""
    verdict: Verdict | None
    by: str
    text: str
    result: str
    grant: str
    secrets: tuple[str, ...]


class AuditBuffer:
    """The part of the broker for calls that nobody is asked about.

    Adding is one list append; the writer does the rest.
    """

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
        result: str = "",
        grant: Grant | None = None,
        secrets: tuple[str, ...] = (),
    ) -> None:
        """Add a step of a call. `secrets` are masked, besides the values that the broker masks anyway.

        `result` is what the call returned.

        `grant` is the remembered answer that lets the call run.
        """
        now, args = self._ledger.now(), json.dumps(call.args)
        grant_id, by = (grant.id, by or grant.by) if grant is not None else ("", by)
        self._steps.append(_Step(str(kind), now, run, call, args, verdict, by, text, result, grant_id, secrets))

    def flush(self) -> None:
        """Write the buffered events, ahead of the next write."""
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
            result=step.result,
            grant=step.grant,
            secrets=step.secrets,
        )
