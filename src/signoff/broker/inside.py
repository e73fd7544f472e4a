"""Claimed calls that wait for runs inside them: on record as such, and put down together with them."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from signoff.core.lifecycle import Entered, Paused
from signoff.core.request import ApprovalRequest, State
from signoff.errors import RequestError
from signoff.ports import Transaction

if TYPE_CHECKING:
    from signoff.broker.broker import Broker


class Inside:
    """The broker's part about calls whose tool runs another agent.

    A call that does nothing but wait for runs that are kept is not unknown when its process dies: it is made again, and
    goes on with those runs. `token` is that of the claim: whoever comes with another has lost it.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def enter(self, tx: Transaction, request_id: str, token: str, now: datetime) -> None:
        """Record that all a claimed call does is to wait for runs inside it."""
        broker, request = self._broker, self._broker.found(tx, request_id)
        if is_held(request, token) and request.claim is not None and not request.claim.inside:
            tx.append([broker.journal.step(broker.put(tx, request, Entered(), now), "entered", now)])

    def pause(self, tx: Transaction, request: ApprovalRequest, now: datetime) -> ApprovalRequest:
        """Put a claimed call down with the runs inside it: whoever takes those up claims it anew."""
        paused = self._broker.put(tx, request, Paused(), now)
        tx.append([self._broker.journal.step(paused, "paused", now)])
        return paused

    def pause_later(self, request_id: str, token: str) -> None:
        """As `pause`, without waiting, by the tool itself: it let the pause of a run inside it pass."""
        broker, now = self._broker, self._broker.clock.now()

        def work(tx: Transaction) -> None:
            with suppress(RequestError):
                self.enter(tx, request_id, token, now)
                if is_held(request := broker.found(tx, request_id), token):
                    self.pause(tx, request, now)

        broker.store.later("pause", work)


def is_held(request: ApprovalRequest, token: str) -> bool:
    """Whether a call is running on the claim with this token."""
    return request.state is State.CLAIMED and request.claim is not None and request.claim.token == token
