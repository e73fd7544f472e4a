"""The status of a saved run: whether a process executes it, what it waits for, what was answered."""

from __future__ import annotations

from dataclasses import dataclass

from signoff.broker.ledger import Ledger
from signoff.core.inbox_row import RunItem
from signoff.core.request import State
from signoff.core.run import DamagedRun, Process, RunState, SavedRun
from signoff.errors import StoreDamaged
from signoff.ports import Transaction
from signoff.processes import is_alive

MOST_NAMED = 20
"""How many of the requests that a run waits for are read with its status. The others are counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStatus:
    """The current state of a run, with what it waits for."""

    run: SavedRun
    waiting: tuple[RunItem, ...]
    """Requests that wait for a person: the oldest of them, at most `MOST_NAMED`."""
    waits: int
    """How many wait for a person in all."""
    answered: tuple[RunItem, ...]
    """Requests that were answered and not yet acted upon."""
    process: Process | None
    alive: bool
    """Whether a process executes it."""
    damaged: str = ""
    """Why it cannot be read, or a request that it waits for: the store is damaged there."""

    @property
    def died(self) -> bool:
        """Whether the process that executed it ended or stopped responding before it could give the run up."""
        return self.run.state is RunState.GOING and bool(self.run.holder) and not self.alive and not self.damaged

    @property
    def word(self) -> str:
        """`running`, `waiting`, `ready`, `died`, `done`, `failed`, `cancelled`, `damaged`."""
        if self.damaged:
            return "damaged"
        if self.run.state is not RunState.GOING:
            return str(self.run.state)
        if self.alive:
            return "waiting" if self.waiting else "running"
        if self.answered or not self.waiting:
            return "died" if self.died else "ready"
        return "waiting"


def run_status(tx: Transaction, ledger: Ledger, run: SavedRun) -> RunStatus:
    """Return the current status of a run. Of one that is damaged, or waits for what is, only that."""
    try:
        return _status(tx, ledger, run)
    except StoreDamaged as wrong:
        return RunStatus(run=run, waiting=(), waits=0, answered=(), process=None, alive=False, damaged=str(wrong))


def _status(tx: Transaction, ledger: Ledger, run: SavedRun) -> RunStatus:
    is_going = run.state is RunState.GOING
    waiting, waits = tx.requests.waiting_of(run.id, limit=MOST_NAMED) if is_going else ((), 0)
    process = tx.processes.get(run.holder) if run.holder else None
    return RunStatus(
        run=run,
        waiting=tuple(waiting),
        waits=waits,
        # An approved call that was claimed before is paused with runs inside it, and waits for what they wait for.
        answered=tuple(
            one
            for one in (tx.past.answered_of(run.id) if is_going else ())
            if one.id not in run.heard and not (one.inside and one.state is State.APPROVED)
        ),
        process=process,
        alive=run.holder == ledger.process.id or is_alive(process, ledger.now()),
        damaged=run.detail if isinstance(run, DamagedRun) else "",
    )
