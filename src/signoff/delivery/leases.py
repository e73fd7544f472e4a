"""Which process shows things in a channel, and since when that does not work: what every process can read of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from signoff.broker.ledger import Ledger
from signoff.core.lease import Down, Lease
from signoff.errors import WrongUse
from signoff.ports import Transaction
from signoff.processes import is_alive

LONGEST_PROBLEM = 500


def lease_of(tx: Transaction, channel: str) -> Lease:
    """Who runs a channel."""
    return tx.leases.get(channel) or Lease(channel=channel)


def take_lease(tx: Transaction, ledger: Ledger, channel: str, backup_for: str, now: datetime) -> Lease:
    """Have this process run a channel; raises `WrongUse`, which names the process, where another one does."""
    lease = lease_of(tx, channel)
    if lease.process not in ("", ledger.process.id) and is_alive(process := tx.processes.get(lease.process), now):
        where = f"process {process.pid} on {process.host.partition('/')[0]}" if process else lease.process
        raise WrongUse(
            f"channel {channel!r} is run by {where}; two processes would show everything twice: stop that one first"
        )
    taken = replace(lease, process=ledger.process.id, backup_for=backup_for)
    tx.leases.put(taken)
    ledger.enlist(tx, now)
    return taken


def check_lease(tx: Transaction, ledger: Ledger, channel: str) -> Lease:
    """The lease, if this process has it; raises `WrongUse` where another one took it over, thinking this one gone."""
    lease = lease_of(tx, channel)
    if lease.process != ledger.process.id:
        raise WrongUse(f"channel {channel!r} was taken over by another process, because this one stopped responding")
    return lease


def give_back(tx: Transaction, ledger: Ledger, channel: str) -> None:
    """Let go of a channel, if this process has it."""
    lease = lease_of(tx, channel)
    if lease.process == ledger.process.id:
        tx.leases.put(replace(lease, process=""))


def put_down(tx: Transaction, ledger: Ledger, channel: str, down: Down | None) -> None:
    """Say that nothing can be shown in a channel, or that it can again."""
    lease = check_lease(tx, ledger, channel)
    if down is not None:
        down = replace(down, problem=ledger.journal.text(down.problem, longest=LONGEST_PROBLEM))
    if lease.down != down:
        tx.leases.put(replace(lease, down=down))
