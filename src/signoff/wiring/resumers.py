"""Which programs resume the runs of a store by themselves, so that people are told what is true of a waiting run."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from signoff.broker.ledger import Ledger
from signoff.config import Settings
from signoff.core.codec import StoredShape
from signoff.core.run import SavedRun
from signoff.ports import Transaction
from signoff.processes import is_alive
from signoff.wiring.run_location import began_in, root_of
from signoff.wiring.serve_lease import lease_of_server

WATCH, CHANNELS = "signoff resume --watch", "signoff channels run"
"""The commands that do, besides a server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumingProcess:
    """The process that last began to resume runs with a command, as the store has it."""

    process: str
    since: datetime


_PROCESS = StoredShape(ResumingProcess, "settings")


async def note_resumer(ledger: Ledger, command: str) -> None:
    """Note that this process resumes runs from now on, as the command does."""

    def work(tx: Transaction, now: datetime) -> None:
        ledger.enlist(tx, now)
        tx.settings.put(_key(command), _PROCESS.to_text(ResumingProcess(process=ledger.process.id, since=now)))

    await ledger.write("note who resumes runs", work)


async def who_resumes(ledger: Ledger, run: SavedRun, here: Settings | None = None) -> str:
    """Name the program that resumes a run by itself once it is answered; empty if there is none.

    `here` is the project whose file may name the agent, for a run that a program started.
    """
    is_named = here is not None and run.name in here.agents

    def work(tx: Transaction) -> str:
        now = ledger.now()
        lease = lease_of_server(tx, now)
        if lease is not None and (
            any(began_in(run.setup, root) for root in lease.projects)
            if run.agent
            else here is not None and is_named and root_of(here) in lease.projects
        ):
            return f"the server at {lease.url}"
        commands = (WATCH, CHANNELS) if run.agent else (WATCH,) if is_named else ()
        return next((f"`{one}`" for one in commands if _resumes(tx, one, now)), "")

    return await ledger.store.read(work)


def _resumes(tx: Transaction, command: str, now: datetime) -> bool:
    text = tx.settings.get(_key(command))
    return bool(text) and is_alive(tx.processes.get(_PROCESS.from_text(text).process), now)


def _key(command: str) -> str:
    return f"resumed by {command}"
