"""Which process shows things in a channel, and since when that does not work: what every process can read of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from signoff.broker.holder import is_alive
from signoff.broker.ledger import Ledger
from signoff.errors import WrongUse
from signoff.ports import Transaction

LONGEST_PROBLEM = 500
_NAME = "channel:"
"""Before a channel's name, in the name of the setting that holds its lease."""
_NAMES = "channels"
"""The setting that names all channels anybody ever had in hand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Down:
    """Nothing can be shown in a channel, whatever it is."""

    since: datetime
    problem: str
    attempts: int = 1
    next_at: datetime | None = None
    """Not to be tried again before."""
    hopeless: bool = False
    """Whether somebody has to do something first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A channel in the hand of a process."""

    process: str = ""
    """Id of the process; empty where it was given back."""
    backup_for: str = ""
    down: Down | None = None


def lease_of(tx: Transaction, channel: str) -> Lease:
    """Who has a channel in hand."""
    said = tx.settings.get(_NAME + channel)
    return _read(json.loads(said)) if said else Lease()


def leases(tx: Transaction) -> Mapping[str, Lease]:
    """All channels that anybody ever had in hand, by name."""
    return {name: lease_of(tx, name) for name in json.loads(tx.settings.get(_NAMES) or "[]")}


def take_lease(tx: Transaction, ledger: Ledger, channel: str, backup_for: str, now: datetime) -> Lease:
    """Take a channel in this process's hand; raises `WrongUse`, which names the process, where another one has it."""
    lease = lease_of(tx, channel)
    if lease.process not in ("", ledger.process.id) and is_alive(process := tx.processes.get(lease.process), now):
        where = f"process {process.pid} on {process.host.partition('/')[0]}" if process else lease.process
        raise WrongUse(f"channel {channel!r} is run by {where}; two would show everything twice: stop that one first")
    names: list[str] = json.loads(tx.settings.get(_NAMES) or "[]")
    if channel not in names:
        tx.settings.put(_NAMES, json.dumps([*names, channel]))
    taken = replace(lease, process=ledger.process.id, backup_for=backup_for)
    _put(tx, channel, taken)
    ledger.enlist(tx, now)
    return taken


def check_lease(tx: Transaction, ledger: Ledger, channel: str) -> Lease:
    """The lease, if this process has it; raises `WrongUse` where another one took it over, thinking this one gone."""
    lease = lease_of(tx, channel)
    if lease.process != ledger.process.id:
        raise WrongUse(f"channel {channel!r} was taken over by another process, which heard nothing of this one")
    return lease


def give_back(tx: Transaction, ledger: Ledger, channel: str) -> None:
    """Let go of a channel, if this process has it."""
    lease = lease_of(tx, channel)
    if lease.process == ledger.process.id:
        _put(tx, channel, replace(lease, process=""))


def put_down(tx: Transaction, ledger: Ledger, channel: str, down: Down | None) -> None:
    """Say that nothing can be shown in a channel, or that it can again."""
    lease = check_lease(tx, ledger, channel)
    if down is not None:
        down = replace(down, problem=ledger.journal.text(down.problem, longest=LONGEST_PROBLEM))
    if lease.down != down:
        _put(tx, channel, replace(lease, down=down))


def _put(tx: Transaction, channel: str, lease: Lease) -> None:
    body: dict[str, Any] = {"process": lease.process, "backup_for": lease.backup_for}
    if (down := lease.down) is not None:
        body["down"] = {
            "since": down.since.isoformat(),
            "problem": down.problem,
            "attempts": down.attempts,
            "next_at": down.next_at.isoformat() if down.next_at else None,
            "hopeless": down.hopeless,
        }
    tx.settings.put(_NAME + channel, json.dumps(body))


def _read(body: Mapping[str, Any]) -> Lease:
    down = None
    if (said := body.get("down")) is not None:
        down = Down(
            since=datetime.fromisoformat(said["since"]),
            problem=said["problem"],
            attempts=said["attempts"],
            next_at=datetime.fromisoformat(said["next_at"]) if said["next_at"] else None,
            hopeless=said["hopeless"],
        )
    return Lease(process=body["process"], backup_for=body["backup_for"], down=down)
