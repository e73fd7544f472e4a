"""Channel leases: which process runs a channel, and since when the channel is down. Every process can read them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from signoff.broker.ledger import Ledger
from signoff.core.lease import Lease, Outage
from signoff.errors import WrongUse
from signoff.ports import Transaction
from signoff.processes import is_alive

LONGEST_PROBLEM = 500


def lease_of(tx: Transaction, channel: str) -> Lease:
    """Return a channel's lease; an empty one if there is none."""
    return tx.leases.get(channel) or Lease(channel=channel)


def take_lease(tx: Transaction, ledger: Ledger, channel: str, now: datetime) -> Lease:
    """Take the lease of a channel for this process. Raises `WrongUse`, naming the process, if a live one has it."""
    lease = lease_of(tx, channel)
    if lease.process not in ("", ledger.process.id) and is_alive(process := tx.processes.get(lease.process), now):
        where = process.place if process else lease.process
        raise WrongUse(
            f"channel {channel!r} is run by {where}; two processes would show everything twice: stop that one first"
        )
    taken = replace(lease, process=ledger.process.id)
    tx.leases.put(taken)
    ledger.enlist(tx, now)
    return taken


def check_lease(tx: Transaction, ledger: Ledger, channel: str) -> Lease:
    """Return the lease. Raises `WrongUse` if another process took it over because this one stopped responding."""
    lease = lease_of(tx, channel)
    if lease.process != ledger.process.id:
        raise WrongUse(f"channel {channel!r} was taken over by another process, because this one stopped responding")
    return lease


def give_back(tx: Transaction, ledger: Ledger, channel: str) -> None:
    """Give back the lease of a channel, if this process has it."""
    lease = lease_of(tx, channel)
    if lease.process == ledger.process.id:
        tx.leases.put(replace(lease, process=""))


def put_down(tx: Transaction, ledger: Ledger, channel: str, down: Outage | None) -> None:
    """Record that a channel is down, or that it works again (None)."""
    lease = check_lease(tx, ledger, channel)
    if down is not None:
        down = replace(down, problem=ledger.journal.text(down.problem, longest=LONGEST_PROBLEM))
    if lease.down != down:
        tx.leases.put(replace(lease, down=down))
