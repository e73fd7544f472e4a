"""Feeds time to requests: deadlines, reminders, escalation, and claims whose process is gone."""

from __future__ import annotations

import warnings
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from signoff.broker.checkpoints import Signer, checkpoint_if_due, make_checkpoint
from signoff.broker.holder import is_alive
from signoff.core.lifecycle import Event, Expired, Lost, Reminded
from signoff.core.quorum import who
from signoff.core.record import Draft
from signoff.core.request import ApprovalRequest, State
from signoff.errors import RequestError, SignoffError
from signoff.ports import Store, Transaction

if TYPE_CHECKING:
    from signoff.broker.broker import Broker

EVERY = timedelta(seconds=5)


class Sweeper:
    """The broker's part about time. Any number of processes may sweep the same store at once."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def sweep(self) -> list[ApprovalRequest]:
        """Feed time to what is due; returns what changed: expired, escalated, parked, reminded of, unknown by now."""
        broker = self._broker

        def look(tx: Transaction) -> list[str]:
            now = broker.clock.now()
            lost = [one for one, holder in tx.claimed() if self._is_gone(tx, holder, now)]
            return [*tx.due(now), *lost]

        due = await broker.store.read(look)
        if not due:
            return []

        def work(tx: Transaction) -> list[ApprovalRequest]:
            now = broker.clock.now()
            return [changed for one in due if (changed := self.feed(tx, one, now)) is not None]

        return await broker.store.write("sweep", work)

    async def sweep_forever(self) -> None:
        """Sweep every few seconds, until cancelled."""
        clock = self._broker.clock
        while True:
            await self.sweep()
            await self.sign_if_due()
            await clock.sleep_until(clock.now() + EVERY)

    async def sign_if_due(self) -> None:
        """Sign the end of the record, if it was not for a while and there is a key to sign with."""
        await self._sign(checkpoint_if_due)

    async def sign_end(self) -> None:
        """Sign the record as it stands, if there is a key to sign with: at the end of a run."""
        await self._sign(make_checkpoint)

    async def _sign(self, make: Callable[[Store, Signer, datetime], Awaitable[object]]) -> None:
        broker = self._broker
        if broker.signer is None:
            return
        try:
            await make(broker.store, broker.signer, broker.clock.now())
        except SignoffError as error:  # what is to be done goes on; `audit verify` says what is wrong
            warnings.warn(f"the record could not be signed: {error}", RuntimeWarning, stacklevel=2)

    def feed(self, tx: Transaction, request_id: str, now: datetime) -> ApprovalRequest | None:
        """A due request after its time was fed to it; None where somebody answered in the same instant."""
        broker = self._broker
        request = broker.found(tx, request_id)
        if request.state is State.CLAIMED:
            assert request.claim is not None, "a claimed request has a claim"
            if not self._is_gone(tx, request.claim.holder, now):
                return None
            if request.claim.inside:
                return broker.inside.pause(tx, request, now)
            lost = broker.put(tx, request, Lost(), now)
            tx.append([broker.journal.step(lost, "unknown", now, why="the process that ran it is gone")])
            return lost
        if request.state is not State.PENDING:
            return None
        event: Event = Expired() if request.deadline is not None and request.deadline <= now else Reminded()
        try:
            changed = broker.put(tx, request, event, now)
        except RequestError:
            return None
        tx.append([self._told(changed, event, now)])
        return changed

    def _told(self, request: ApprovalRequest, event: Event, now: datetime) -> Draft:
        journal = self._broker.journal
        if isinstance(event, Reminded):
            return journal.step(request, "reminded", now)
        if request.state is not State.PENDING:
            return journal.settled(request, now)
        if request.deadline is None:
            return journal.step(request, "parked", now)
        needed = request.requirement
        return journal.step(request, "escalated", now, to=needed.role or "", needs=who(needed))

    def _is_gone(self, tx: Transaction, holder: str, now: datetime) -> bool:
        return holder != self._broker.process.id and not is_alive(tx.process(holder), now)
