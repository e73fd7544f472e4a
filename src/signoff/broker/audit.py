"""Verify or export the whole audit log of a store. It is read page by page, while others may write."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime
from functools import partial

from signoff.broker.checkpoints import Signer, known_as, make_checkpoint, place_of, store_id
from signoff.core.export import Export, Exporter, Header, csv_header, csv_row
from signoff.core.record import START, Checkpoint, Entry, IsSigned, Verified, Walk, timestamp
from signoff.errors import RecordBroken, StoreError, WrongUse
from signoff.ports import Store, Transaction

PAGE = 1_000

Progress = Callable[[int], object]
"""Called with the number of events done."""


def _silent(count: int) -> None: ...


async def verify_store(
    store: Store, signer: Signer, is_signed: IsSigned, *, place: str = "", progress: Progress = _silent
) -> Verified:
    """Verify the hash chain of a store's audit log, its checkpoints, and the copies that this machine keeps of some.

    `place` is where the store is meant to be, if it does not say so itself.
    Raises `RecordBroken` if events are missing, added or changed.
    """
    # Read the checkpoints first: the events they sign existed before, so they must be among the events read afterwards.
    last, first, checkpoints = await store.read(_outline)
    if last[0] and last[1] == START:
        raise WrongUse("this store has no audit log")
    if first and first[0].seq < 1:
        raise RecordBroken(f"event {first[0].seq} was added: the log starts with event 1", seq=first[0].seq)
    walk = Walk(is_signed)
    for checkpoint in checkpoints:
        walk.checkpoint(checkpoint)
    for name in await store.read(lambda tx: known_as(tx, place or place_of(store))):
        if (copy := signer.newest(name)) is not None:
            walk.checkpoint(copy, str(signer.copy_of(name)))
    async for page, head in _pages(store):
        for entry in page:
            walk.event(entry)
        last = head
        progress(walk.seq)
    verified = walk.end()
    if not walk.seq and await store.read(lambda tx: tx.requests.like("", limit=1) or tx.runs.like("", limit=1)):
        raise walk.cut_off("the store holds requests or runs, but no audit log of them")
    if last[0] != walk.seq:
        raise walk.cut_off(f"the store counts {last[0]}")
    if last[1] != walk.hash:
        raise walk.cut_off("the store says that another event was the last")
    return verified


def _outline(tx: Transaction) -> tuple[tuple[int, str], Sequence[Entry], Sequence[Checkpoint]]:
    return tx.record.head(), tx.record.entries(after=-(2**62), limit=1), tx.checkpoints.all()


async def export_store(
    store: Store,
    signer: Signer,
    is_signed: IsSigned,
    now: datetime,
    write: Callable[[bytes], object],
    *,
    progress: Progress = _silent,
) -> Export:
    """Write the audit log as JSON lines and verify it on the way.

    Raises `RecordBroken` before it signs a broken log.
    """
    await make_checkpoint(store, signer, now)
    (head, _), _, checkpoints = await store.read(_outline)
    header = Header(store=await store.read(store_id), key=signer.public_key(make=True), at=timestamp(now))
    exporter = Exporter(header, is_signed)
    signed: dict[int, list[Checkpoint]] = {}
    for checkpoint in checkpoints:
        if checkpoint.seq <= head:
            signed.setdefault(checkpoint.seq, []).append(checkpoint)
    write(exporter.begin())
    async for page, _ in _pages(store, upto=head):
        for entry in page:
            write(exporter.event(entry))
            for checkpoint in signed.pop(entry.seq, ()):
                write(exporter.checkpoint(checkpoint))
        progress(exporter.events)
    for checkpoint in (one for left in signed.values() for one in left):
        exporter.checkpoint(checkpoint)  # the event it signs does not exist: this call or `end` raises
    last, record = exporter.end(lambda text: signer.sign(text)[1], events=head)
    write(last)
    return Export(header=header, record=record)


async def export_csv(store: Store, write: Callable[[bytes], object], *, progress: Progress = _silent) -> int:
    """Write the audit log as CSV without verifying it; return the number of events."""
    count = 0
    write(csv_header().encode())
    async for page, _ in _pages(store):
        for entry in page:
            write(csv_row(entry).encode("utf-8", "backslashreplace"))
        count += len(page)
        progress(count)
    return count


async def _pages(store: Store, *, upto: int | None = None) -> AsyncIterator[tuple[Sequence[Entry], tuple[int, str]]]:
    """Yield the events in order, page by page, each page with the head of the log as of the same read transaction."""
    after, patience = 0, PAGE
    while upto is None or after < upto:
        limit = patience if upto is None else min(patience, upto - after)
        try:
            page, head = await store.read(partial(_page, after=after, limit=limit))
        except StoreError as error:
            if limit == 1:
                # The store works otherwise, so this event is the broken one.
                await store.read(lambda tx: tx.record.head())
                raise RecordBroken(f"event {after + 1} cannot be read: {error}", seq=after + 1) from error
            patience = 1  # one of these events cannot be read: go one by one until it is found
            continue
        yield page, head
        await asyncio.sleep(0)  # let other tasks of the event loop run
        if len(page) < limit:
            return
        after = page[-1].seq


def _page(tx: Transaction, *, after: int, limit: int) -> tuple[Sequence[Entry], tuple[int, str]]:
    return tx.record.entries(after=after, limit=limit), tx.record.head()
