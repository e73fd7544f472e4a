"""The status of a saved run: whether a process executes it, what it waits for, what was answered."""

from __future__ import annotations

from dataclasses import dataclass

from signoff.broker.ledger import Ledger
from signoff.core.lifecycle import OPEN
from signoff.core.request import ApprovalRequest, State
from signoff.core.run import Process, RunState, SavedRun
from signoff.ports import Transaction
from signoff.processes import is_alive

_ACTED = (*OPEN, State.SUCCEEDED, State.FAILED, State.CLAIMED, State.CANCELLED)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """The current state of a run, with what it waits for."""

    run: SavedRun
    waiting: tuple[ApprovalRequest, ...]
    """Requests that wait for a person."""
    answered: tuple[ApprovalRequest, ...]
    """Requests that were answered and not yet acted upon."""
    process: Process | None
    alive: bool
    """Whether a process executes it."""

    @property
    def died(self) -> bool:
        """Whether the process that executed it ended or stopped responding before it could give the run up."""
        return self.run.state is RunState.GOING and bool(self.run.holder) and not self.alive

    @property
    def word(self) -> str:
        """`running`, `waiting`, `ready`, `died`, `done`, `failed`, `cancelled`."""
        if self.run.state is not RunState.GOING:
            return str(self.run.state)
        if self.alive:
            return "waiting" if self.waiting else "running"
        if self.answered or not self.waiting:
            return "died" if self.died else "ready"
        return "waiting"


def run_status(tx: Transaction, ledger: Ledger, run: SavedRun) -> RunStatus:
    """Return the current status of a run."""
    requests = tx.requests.of(run=run.id) if run.state is RunState.GOING else ()
    process = tx.processes.get(run.holder) if run.holder else None
    return RunStatus(
        run=run,
        waiting=tuple(one for one in requests if one.state in OPEN),
        # An approved call that was claimed before is paused with runs inside it, and waits for what they wait for.
        answered=tuple(
            one for one in requests if one.state not in _ACTED and one.id not in run.heard and not _paused(one)
        ),
        process=process,
        alive=run.holder == ledger.process.id or is_alive(process, ledger.now()),
    )


def _paused(request: ApprovalRequest) -> bool:
    return request.state is State.APPROVED and request.claim is not None and request.claim.inside
