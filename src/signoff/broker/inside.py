"""Claimed calls that wait for a run inside them: entered, left, and put down together with it."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from signoff.core.lifecycle import Entered, Left, Paused
from signoff.core.request import ApprovalRequest, State
from signoff.errors import RequestError
from signoff.ports import Transaction

if TYPE_CHECKING:
    from signoff.broker.broker import Broker


class Inside:
    """The broker's part about calls whose tool runs another agent.

    While all such a call does is to wait for a run that is kept, its outcome is not unknown when the process dies: it
    is entered again with that run.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def enter(self, tx: Transaction, request_id: str, now: datetime) -> None:
        """Record that all a claimed call does is to wait for a run inside it."""
        broker, request = self._broker, self._broker.found(tx, request_id)
        if request.state is State.CLAIMED and request.claim is not None and not request.claim.inside:
            tx.append([broker.journal.step(broker.put(tx, request, Entered(), now), "entered", now)])

    async def leave(self, request_id: str) -> ApprovalRequest:
        """Record that the run inside a claimed call is over: if this process dies now, its outcome is unknown."""
        return await self._broker.advance("leave", request_id, Left(), "left")

    def pause(self, tx: Transaction, request: ApprovalRequest, now: datetime) -> ApprovalRequest:
        """Put a claimed call down with the run inside it: whoever takes that up claims it anew."""
        paused = self._broker.put(tx, request, Paused(), now)
        tx.append([self._broker.journal.step(paused, "paused", now)])
        return paused

    def pause_later(self, request_id: str) -> None:
        """As `pause`, without waiting."""
        broker, now = self._broker, self._broker.clock.now()

        def work(tx: Transaction) -> None:
            with suppress(RequestError):
                self.enter(tx, request_id, now)
                self.pause(tx, broker.found(tx, request_id), now)

        broker.store.later("pause", work)
