"""Sign the end of the audit log with checkpoints, so that truncation is detected.

A signer keeps a copy outside the store, and signs again only if the log still contains what the copy says. A log that
was rewritten never gets a new signature from a machine that signed the original.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from signoff.core.record import START, Checkpoint, is_link, signed_text, timestamp
from signoff.errors import RecordBroken
from signoff.ports import Store, Transaction

EVENTS = 1_000
AGE = timedelta(minutes=10)


class Signer(Protocol):
    """Holds a signing key and, outside of any store, the newest checkpoint of each; `store.signing_key.Keys` is one."""

    def public_key(self, *, make: bool = False) -> str: ...

    def sign(self, text: bytes) -> tuple[str, str]: ...

    def newest(self, store: str) -> Checkpoint | None: ...

    def keep(self, store: str, checkpoint: Checkpoint) -> None: ...

    def copy_of(self, store: str) -> Path: ...


def store_id(tx: Transaction) -> str:
    """Identify an audit log by its first event, which cannot be replaced without replacing all that follow.

    Empty while there is none.
    """
    first = tx.record.entries(limit=1)
    return str(first[0].hash)[:16] if first else ""


def known_as(tx: Transaction, place: str) -> tuple[str, ...]:
    """The names under which a copy is kept: one for the first event, wherever the store is, and one for the place.

    The name by first event detects a log whose end was cut off. The name by place detects a log that was replaced.
    """
    by_place = f"at-{sha256(place.encode('utf-8', 'backslashreplace')).hexdigest()[:16]}" if place else ""
    return tuple(filter(None, (store_id(tx), by_place)))


def place_of(store: Store) -> str:
    """Where a store says that it is; empty if it does not say."""
    return str(getattr(store, "place", "") or getattr(store, "path", ""))


def is_due(head: int, last: Checkpoint | None, now: datetime) -> bool:
    """Whether it is time for a checkpoint; `head` is the number of the last event."""
    if last is None or head < last.seq:
        return head > 0
    return head - last.seq >= EVENTS or (head > last.seq and now - datetime.fromisoformat(last.at) >= AGE)


async def checkpoint_if_due(store: Store, signer: Signer, now: datetime) -> Checkpoint | None:
    """Make a checkpoint if it is time. Cheap if not: one read of the store, one of the copy."""
    import asyncio

    head, name = await store.read(lambda tx: (tx.record.head()[0], store_id(tx)))
    last = await asyncio.to_thread(signer.newest, name) if name else None
    return await make_checkpoint(store, signer, now) if is_due(head, last, now) else None


async def make_checkpoint(store: Store, signer: Signer, now: datetime) -> Checkpoint | None:
    """Sign the audit log as it stands; None if nothing was written since the last checkpoint.

    Raises `RecordBroken`, and signs nothing, if the log no longer contains what this machine signed before.
    """
    import asyncio

    place = place_of(store)
    names = await store.read(lambda tx: known_as(tx, place))
    copies = await asyncio.to_thread(lambda: {name: signer.newest(name) for name in names})
    if await store.read(lambda tx: _unsigned(tx, names, signer, copies.get)) is None:
        return None
    await asyncio.to_thread(signer.public_key, make=True)  # before the transaction takes the lock

    def work(tx: Transaction) -> tuple[tuple[str, ...], Checkpoint] | None:
        names = known_as(tx, place)
        checkpoint = signed(tx, names, signer, now)
        return None if checkpoint is None else (names, checkpoint)

    made = await store.write("checkpoint", work)
    if made is None:
        return None
    names, checkpoint = made
    for name in names:
        # Only after the commit: a copy that is ahead of its store would be a false alarm.
        await asyncio.to_thread(signer.keep, name, checkpoint)
    return checkpoint


def signed(tx: Transaction, names: tuple[str, ...], signer: Signer, now: datetime) -> Checkpoint | None:
    """Sign the audit log as it stands in a transaction; None if nothing is new. Raises `RecordBroken`.

    The caller keeps the copy after the commit, not before.
    """
    head = _unsigned(tx, names, signer, signer.newest)
    if head is None:
        return None
    (seq, link), at = head, timestamp(now)
    key, signature = signer.sign(signed_text(seq, link, at))
    checkpoint = Checkpoint(seq=seq, hash=link, at=at, key=key, signature=signature)
    tx.checkpoints.add(checkpoint)
    return checkpoint


def _unsigned(
    tx: Transaction, names: tuple[str, ...], signer: Signer, newest_copy: Callable[[str], Checkpoint | None]
) -> tuple[int, str] | None:
    """Return the last event if this machine did not sign it yet; raises `RecordBroken` if what it signed is gone."""
    seq, link = tx.record.head()
    if not seq or link == START:  # nothing was written, or this store in memory keeps no audit log
        return None
    newest = tx.record.entries(after=seq - 1, limit=1)
    if not newest or newest[0].hash != link or not is_link(newest[0]):
        raise RecordBroken(f"event {seq} is missing or was changed; `signoff audit verify` says more", seq=seq)
    upto = 0
    for name in names:
        if (last := newest_copy(name)) is None:
            continue
        signed = tx.record.entries(after=last.seq - 1, limit=1)
        if not signed or signed[0].seq != last.seq or signed[0].hash != last.hash:
            what = (
                f"event {last.seq} is not the one that this machine signed at {last.at}; {not_what_was(signer, name)}"
            )
            raise RecordBroken(what, seq=last.seq)
        upto = max(upto, last.seq)
    return (seq, link) if seq > upto else None


def not_what_was(signer: Signer, name: str) -> str:
    """What to do if the audit log does not contain what a copy says."""
    return f"if you know why (a restored backup, a new store), move {signer.copy_of(name)} away"
