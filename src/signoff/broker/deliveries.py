"""What stands in which channel: where, what went wrong, and who was given the whole of a long call to read.

Needs no channel: anybody who can open the store can ask. `signoff.broker.post` does the showing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from signoff.broker.holder import is_alive
from signoff.broker.leases import Lease, leases
from signoff.broker.ledger import Ledger
from signoff.broker.requests import found
from signoff.broker.said import keep_said
from signoff.broker.showing import marked
from signoff.core.delivery import NEVER, Delivery, DeliveryState
from signoff.core.notice import Asked, trail_of
from signoff.core.people import Answerer
from signoff.core.request import ApprovalRequest
from signoff.core.run import RunState
from signoff.ports import Transaction

_OPENED = "opened:"
"""Before a request's id, in the name of the setting that says who read the whole of it."""


class Deliveries:
    """The broker's part about channels."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self.here: set[str] = set()
        """Channels that a `Post` in this very process has in hand."""
        self.listeners: list[Callable[[str], None]] = []
        """Told the trail whenever something here changes a delivery."""

    async def where(self, channel: str, request_id: str) -> str:
        """Where a channel shows a request, as the channel says; empty where it does not."""
        delivery = await self._ledger.store.read(lambda tx: tx.deliveries.get(channel, request_id))
        return delivery.at if delivery is not None and delivery.shown != NEVER else ""

    async def gone(self, channel: str, request_id: str) -> None:
        """Say that what a channel showed is there no longer: it is shown anew, if it still waits.

        Takes the subject of any notice. `at` is kept, as the channel may need part of it. What is settled before it
        was shown anew is brought up to date once more: part of it may stand there.
        """

        def work(tx: Transaction) -> str:
            delivery = tx.deliveries.get(channel, request_id)
            if delivery is None or delivery.shown == NEVER:
                return ""
            live = delivery.live
            if (request := tx.requests.get(request_id)) is not None:
                live = Asked(request=request).is_live
            again = replace(delivery, state=DeliveryState.DUE, shown=NEVER, live=live)
            again = marked(again, may_stand=True)
            tx.deliveries.put(replace(again, attempts=0, since=None, next_at=None, problem=""))
            return delivery.trail

        if trail := await self._ledger.store.write("gone", work):
            self._tell(trail)

    def _tell(self, trail: str) -> None:
        for listener in self.listeners:
            listener(trail)

    async def opened(self, request_id: str, by: Answerer) -> None:
        """Note that somebody was given the whole of a call, with the arguments it has now."""
        ledger, now = self._ledger, self._ledger.now()

        def work(tx: Transaction) -> None:
            request = found(tx, request_id)
            readers = _readers(tx, request_id)
            if (mine := [request.args_digest, by.key]) not in readers:
                tx.settings.put(_OPENED + request_id, json.dumps([*readers, mine]))
                tx.record.append(
                    [ledger.journal.step(request, "opened", now, by=by.name, args_digest=request.args_digest)]
                )

        await ledger.store.write("opened", work)

    async def has_opened(self, request_id: str, by: Answerer) -> bool:
        """Whether somebody was given the whole of a call, with the arguments it has now."""

        def work(tx: Transaction) -> bool:
            request = tx.requests.get(request_id)
            return request is not None and [request.args_digest, by.key] in _readers(tx, request_id)

        return await self._ledger.store.read(work)

    async def troubles(self, request_ids: Iterable[str]) -> Mapping[str, Sequence[Delivery]]:
        """What could not be shown: for each of these requests that has any, deliveries that are due and say a problem,
        or failed. One for a channel in which nothing can be shown now is among them, though nobody tried that one.
        """
        ids, now = list(request_ids), self._ledger.now()

        def work(tx: Transaction) -> dict[str, Sequence[Delivery]]:
            down = {
                name: lease
                for name, lease in leases(tx).items()
                if lease.down is not None and is_alive(tx.processes.get(lease.process), now)
            }
            found = {one: _troubles(tx, request, down) for one in ids if (request := tx.requests.get(one)) is not None}
            return {one: troubles for one, troubles in found.items() if troubles}

        return await self._ledger.store.read(work)

    async def channels(self) -> Mapping[str, Lease]:
        """Channels that some process has in hand now, and what is wrong with them, if anything."""
        now = self._ledger.now()

        def work(tx: Transaction) -> dict[str, Lease]:
            return {name: one for name, one in leases(tx).items() if is_alive(tx.processes.get(one.process), now)}

        return await self._ledger.store.read(work)

    async def say(
        self, run_id: str, worker: str, state: RunState, text: str, *, secrets: Sequence[str] = ()
    ) -> Sequence[str]:
        """Have people told what a run came to, wherever something of it was shown, or where it began; which channels.

        Said once, it is told again only where it differs. Secrets are masked: the broker's, and `secrets`.
        """
        hidden = (*self._ledger.journal.secrets, *secrets)
        where = await self._ledger.store.write("say", lambda tx: keep_said(tx, run_id, worker, state, text, hidden))
        self._tell(run_id)
        return where


def _readers(tx: Transaction, request_id: str) -> list[list[str]]:
    return json.loads(tx.settings.get(_OPENED + request_id) or "[]")


def _troubles(tx: Transaction, request: ApprovalRequest, down: Mapping[str, Lease]) -> list[Delivery]:
    there = {one.channel: one for one in tx.deliveries.find(request=request.id) if one.subject == request.id}
    for name, lease in down.items():
        known = there.get(name)
        main = there.get(lease.backup_for)
        took_over = main is not None and main.state is DeliveryState.FAILED and main.instead == name
        if known is None and (not lease.backup_for or took_over):
            known = Delivery(channel=name, subject=request.id, trail=trail_of(request), request=request.id)
        if known is not None and known.state is DeliveryState.DUE and lease.down is not None:
            said = lease.down
            there[name] = replace(known, problem=said.problem, since=known.since or said.since, next_at=said.next_at)
    return [
        one
        for one in there.values()
        if one.state is DeliveryState.FAILED or (one.state is DeliveryState.DUE and one.problem)
    ]
