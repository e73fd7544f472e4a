"""The lease on a store for `signoff serve`: one process serves it at a time, and anybody can read which."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from signoff.broker.ledger import Ledger
from signoff.broker.wall_clock import pause_for
from signoff.core.codec import StoredShape
from signoff.core.moment import moment_text
from signoff.core.run import Process
from signoff.errors import WrongUse
from signoff.ports import Transaction
from signoff.processes import is_alive, is_local, seen

AGAIN = timedelta(seconds=1)
"""Polling interval for a sign of life of another server."""
NAME = "served"
"""Key of the lease in the store's settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeLease:
    """The lease of a server, as the store has it."""

    process: str
    url: str
    since: datetime
    projects: tuple[str, ...] = ()
    """The roots of the projects whose runs it resumes; for a project without a file, its directory."""

    @property
    def text(self) -> str:
        return _LEASE.to_text(self)

    @classmethod
    def read(cls, text: str | None) -> ServeLease | None:
        return _LEASE.from_text(text) if text else None


_LEASE = StoredShape(ServeLease, "settings")


async def take_store(
    ledger: Ledger, url: str, waits: Callable[[str], None] | None = None, *, projects: tuple[str, ...] = ()
) -> None:
    """Take the lease, so that this process serves the store. Raises `WrongUse` if another server is alive.

    The lease is taken over from a dead server, and from one on another machine whose heartbeats stopped. Whether a
    server on another machine is alive is not known at once: it may be this very container before its restart. With
    `waits`, which is called with a text about that, wait until the other server sends a heartbeat or its lease expires.
    """

    def work(tx: Transaction, now: datetime) -> tuple[ServeLease, Process] | None:
        lease = ServeLease.read(tx.settings.get(NAME))
        if lease is not None and lease.process != ledger.process.id:
            process = tx.processes.get(lease.process)
            if process is not None and is_alive(process, now):
                return lease, process
        tx.settings.put(NAME, ServeLease(process=ledger.process.id, url=url, since=now, projects=projects).text)
        ledger.enlist(tx, now)
        return None

    before: datetime | None = None
    while (taken := await ledger.write("serve", work)) is not None:
        lease, process = taken
        where = process.place
        if waits is None or is_local(process) or (before is not None and process.seen_at != before):
            raise WrongUse(_taken(lease, where))
        if before is None:
            waits(f"{where} served this store until recently; waiting for a heartbeat")
        before = process.seen_at
        await pause_for(ledger.clock, AGAIN)


async def who_serves(ledger: Ledger) -> ServeLease | None:
    """Return the lease of the server that is alive; None if there is none."""

    return await ledger.store.read(lambda tx: lease_of_server(tx, ledger.now()))


def lease_of_server(tx: Transaction, now: datetime) -> ServeLease | None:
    """Return the lease of the server that is alive; None if there is none."""
    lease = ServeLease.read(tx.settings.get(NAME))
    return lease if lease is not None and is_alive(tx.processes.get(lease.process), now) else None


async def check_store(ledger: Ledger) -> None:
    """Renew the lease with a heartbeat. Raises `WrongUse` if another server has taken it over meanwhile."""

    def work(tx: Transaction, now: datetime) -> None:
        lease = ServeLease.read(tx.settings.get(NAME))
        if lease is None or lease.process != ledger.process.id:
            raise WrongUse("another server took over this store, because this one stopped responding")
        tx.processes.put(seen(ledger.process, now))

    await ledger.write("serve", work, synced=False)


async def leave_store(ledger: Ledger) -> None:
    """Release the lease, if this process has it."""

    def work(tx: Transaction) -> None:
        lease = ServeLease.read(tx.settings.get(NAME))
        if lease is not None and lease.process == ledger.process.id:
            tx.settings.put(NAME, None)

    await ledger.store.write("stop serving", work)


def _taken(lease: ServeLease, where: str) -> str:
    return (
        f"this store is already served at {lease.url}: by {where}, since {moment_text(lease.since)}\n"
        "  stop that one first, or name another store with --store"
    )
