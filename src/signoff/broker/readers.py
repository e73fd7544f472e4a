"""Record who was shown the full text of a call that is too long to be shown at once."""

from __future__ import annotations

from datetime import datetime

from signoff.broker.ledger import Ledger
from signoff.broker.requests import found
from signoff.core.people import Actor
from signoff.ports import Transaction


async def note_reader(ledger: Ledger, request_id: str, by: Actor) -> None:
    """Record that somebody was shown the full call, with its current arguments."""

    def work(tx: Transaction, now: datetime) -> None:
        request = found(tx, request_id)
        if not tx.readers.has(request_id, request.args_digest, by.key):
            tx.readers.add(request_id, request.args_digest, by.key)
            step = ledger.journal.step(request, "opened", now, by=by.name, args_digest=request.args_digest)
            tx.record.append([step])

    await ledger.write("opened", work)


async def has_read(ledger: Ledger, request_id: str, by: Actor) -> bool:
    """Whether somebody was shown the full call, with its current arguments."""

    def work(tx: Transaction) -> bool:
        request = tx.requests.get(request_id)
        return request is not None and tx.readers.has(request_id, request.args_digest, by.key)

    return await ledger.store.read(work)
