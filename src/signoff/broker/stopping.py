"""What is written by whoever is being stopped: handed to the writer, because one who is stopped must not wait."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from signoff.broker.inside import is_held
from signoff.core.lifecycle import AskedAgain, Cancelled, Lost
from signoff.core.request import State
from signoff.errors import RequestError
from signoff.ports import Transaction

if TYPE_CHECKING:
    from signoff.broker.broker import Broker


class Stopping:
    """The broker's part about calls and questions that are cut short."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def give_back(self, request_id: str, token: str) -> None:
        """Record that a claim was taken by somebody who then did not run the call: it may be asked about anew."""
        broker, now = self._broker, self._broker.clock.now()

        def work(tx: Transaction) -> None:
            request = broker.found(tx, request_id)
            if request.state is State.CLAIMED and request.claim and request.claim.token == token:
                given_back = broker.put(tx, request, AskedAgain("the run was stopped before the call began"), now)
                tx.append([broker.journal.settled(given_back, now)])

        broker.store.later("give back", work)

    def lose(self, request_id: str, token: str) -> None:
        """Record that nobody knows how a claimed call ended; one that only waited for runs inside it is put down."""
        broker, now = self._broker, self._broker.clock.now()

        def work(tx: Transaction) -> None:
            with suppress(RequestError):
                request = broker.found(tx, request_id)
                if not is_held(request, token):
                    return
                if request.claim is not None and request.claim.inside:
                    broker.inside.pause(tx, request, now)
                    return
                lost = broker.put(tx, request, Lost(), now)
                tx.append([broker.journal.step(lost, "unknown", now, why="it was stopped half-way")])

        broker.store.later("lose", work)

    def withdraw(self, request_ids: Sequence[str], reason: str) -> None:
        """Withdraw questions that are still open."""
        broker, now = self._broker, self._broker.clock.now()

        def work(tx: Transaction) -> None:
            for request_id in request_ids:
                if (request := tx.request(request_id)) is not None and request.state is State.PENDING:
                    tx.append([broker.journal.settled(broker.put(tx, request, Cancelled(reason), now), now)])

        broker.store.later("withdraw", work)
