"""Signs the end of the record now and then, so that cutting it off is found.

Whoever signs keeps a copy outside of the store, and signs again only a record that still holds what the copy says:
a record that was rewritten never gets a fresh signature from a machine that signed the true one.
"""

from __future__ import annotations

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
    """Holds a key, and outside of any store the newest checkpoint of each; `store.keys.Keys` is one."""

    def public_key(self, *, make: bool = False) -> str: ...

    def sign(self, text: bytes) -> tuple[str, str]: ...

    def newest(self, store: str) -> Checkpoint | None: ...

    def keep(self, store: str, checkpoint: Checkpoint) -> None: ...

    def copy_of(self, store: str) -> Path: ...


def store_id(tx: Transaction) -> str:
    """What tells one record from another: its first event, which cannot be exchanged without all that follow.

    Empty while there is none.
    """
    first = tx.record.entries(limit=1)
    return str(first[0].hash)[:16] if first else ""


def known_as(tx: Transaction, place: str) -> tuple[str, ...]:
    """The names a copy is kept under: by the record's beginning, wherever it is, and by the place, whatever is there.

    A record of which only the end is gone is missed by the first; one that was exchanged whole, by the second.
    """
    by_place = f"at-{sha256(place.encode('utf-8', 'backslashreplace')).hexdigest()[:16]}" if place else ""
    return tuple(filter(None, (store_id(tx), by_place)))


def place_of(store: Store) -> str:
    """Where a store is, as it says itself; empty where it is nowhere in particular."""
    return str(getattr(store, "place", "") or getattr(store, "path", ""))


def is_due(head: int, last: Checkpoint | None, now: datetime) -> bool:
    """Whether it is time for a checkpoint, `head` being the number of the last event."""
    if last is None or head < last.seq:
        return head > 0
    return head - last.seq >= EVENTS or (head > last.seq and now - datetime.fromisoformat(last.at) >= AGE)


async def checkpoint_if_due(store: Store, signer: Signer, now: datetime) -> Checkpoint | None:
    """Make a checkpoint if it is time. Cheap where it is not: one look at the store, one at the copy."""
    head, name = await store.read(lambda tx: (tx.record.head()[0], store_id(tx)))
    last = signer.newest(name) if name else None
    return await make_checkpoint(store, signer, now) if is_due(head, last, now) else None


async def make_checkpoint(store: Store, signer: Signer, now: datetime) -> Checkpoint | None:
    """Sign the record as it stands; None where nothing was written since the last time.

    Raises `RecordBroken`, and signs nothing, where the record no longer holds what this machine signed before.
    """
    place = place_of(store)
    if await store.read(lambda tx: _unsigned(tx, known_as(tx, place), signer)) is None:
        return None
    signer.public_key(make=True)  # files are written before the store is taken, not while

    def work(tx: Transaction) -> tuple[tuple[str, ...], Checkpoint] | None:
        names = known_as(tx, place)
        checkpoint = signed(tx, names, signer, now)
        return None if checkpoint is None else (names, checkpoint)

    made = await store.write("checkpoint", work)
    if made is None:
        return None
    import asyncio

    names, checkpoint = made
    for name in names:
        # Only now, when the store is sure to keep it: a copy that is ahead of its store would be a false alarm.
        await asyncio.to_thread(signer.keep, name, checkpoint)
    return checkpoint


def signed(tx: Transaction, names: tuple[str, ...], signer: Signer, now: datetime) -> Checkpoint | None:
    """Sign the record as it stands in a transaction; None where nothing is new. Raises `RecordBroken`.

    A copy is kept when the store is sure to hold it, and not before.
    """
    head = _unsigned(tx, names, signer)
    if head is None:
        return None
    (seq, link), at = head, timestamp(now)
    key, signature = signer.sign(signed_text(seq, link, at))
    checkpoint = Checkpoint(seq=seq, hash=link, at=at, key=key, signature=signature)
    tx.checkpoints.add(checkpoint)
    return checkpoint


def _unsigned(tx: Transaction, names: tuple[str, ...], signer: Signer) -> tuple[int, str] | None:
    """The last event, if this machine did not sign it yet; raises `RecordBroken` where what it signed is gone."""
    seq, link = tx.record.head()
    if not seq or link == START:  # nothing was written, or a store in memory does not keep it
        return None
    newest = tx.record.entries(after=seq - 1, limit=1)
    if not newest or newest[0].hash != link or not is_link(newest[0]):
        raise RecordBroken(f"event {seq} is missing or was changed; `signoff audit verify` says more", seq=seq)
    upto = 0
    for name in names:
        if (last := signer.newest(name)) is None:
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
    """What to do where the record does not hold what a copy says."""
    return f"if you know why (a restored backup, a new store), move {signer.copy_of(name)} away"
