"""Which process serves a store: one at a time, and everybody can read which."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime

from signoff.broker.ledger import Ledger
from signoff.core.moment import moment_text
from signoff.errors import WrongUse
from signoff.ports import Transaction
from signoff.processes import is_alive, seen

NAME = "served"
"""Of the setting in the store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeLease:
    """A server, as the store knows it."""

    process: str
    url: str
    since: datetime

    @property
    def text(self) -> str:
        return json.dumps({"process": self.process, "url": self.url, "since": self.since.isoformat()})

    @classmethod
    def read(cls, text: str | None) -> ServeLease | None:
        if not text:
            return None
        data = json.loads(text)
        return cls(process=data["process"], url=data["url"], since=datetime.fromisoformat(data["since"]))


async def take_store(ledger: Ledger, url: str) -> None:
    """Have this process serve the store. Raises `WrongUse`, which says who does, where another one lives that does.

    One that is gone, or that is elsewhere and silent, is taken over from.
    """

    def work(tx: Transaction, now: datetime) -> None:
        lease = ServeLease.read(tx.settings.get(NAME))
        if lease is not None and lease.process != ledger.process.id:
            process = tx.processes.get(lease.process)
            if process is not None and is_alive(process, now):
                raise WrongUse(_taken(lease, f"process {process.pid} on {process.host.partition('/')[0]}"))
        tx.settings.put(NAME, ServeLease(process=ledger.process.id, url=url, since=now).text)
        ledger.enlist(tx, now)

    await ledger.write("serve", work)


async def who_serves(ledger: Ledger) -> str:
    """The address of the server that lives, if there is one; else empty."""

    def work(tx: Transaction) -> str:
        lease = ServeLease.read(tx.settings.get(NAME))
        return lease.url if lease is not None and is_alive(tx.processes.get(lease.process), ledger.now()) else ""

    return await ledger.store.read(work)


async def check_store(ledger: Ledger) -> None:
    """Say that this process still serves the store; raises `WrongUse` where another took it over, thinking it gone."""

    def work(tx: Transaction, now: datetime) -> None:
        lease = ServeLease.read(tx.settings.get(NAME))
        if lease is None or lease.process != ledger.process.id:
            raise WrongUse("another server took this store over, which heard nothing of this one")
        tx.processes.put(seen(ledger.process, now))

    await ledger.write("serve", work, synced=False)


async def leave_store(ledger: Ledger) -> None:
    """Let go of the store, if this process serves it."""

    def work(tx: Transaction) -> None:
        lease = ServeLease.read(tx.settings.get(NAME))
        if lease is not None and lease.process == ledger.process.id:
            tx.settings.put(NAME, None)

    await ledger.store.write("stop serving", work)


def _taken(lease: ServeLease, where: str) -> str:
    return (
        f"this store is served already, at {lease.url}: by {where}, since {moment_text(lease.since)}\n"
        "  stop that one first, or name another store with --store"
    )
