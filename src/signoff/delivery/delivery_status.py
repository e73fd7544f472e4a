"""Query and change the state of deliveries. Needs no running channel, only the store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from signoff.broker.ledger import Ledger
from signoff.broker.requests import readable
from signoff.core.delivery import NEVER, Delivery, DeliveryState
from signoff.core.event import RunMessage
from signoff.core.lease import Lease
from signoff.core.notice import Asked, trail_of
from signoff.core.request import ApprovalRequest
from signoff.core.run import RunState
from signoff.core.subject import Subject, SubjectKind
from signoff.delivery.results import tell, tell_message
from signoff.ports import Transaction
from signoff.processes import is_alive


async def place_of(ledger: Ledger, channel: str, subject: Subject, *, planned: bool = False) -> str:
    """Return where a channel shows something, in the channel's own format; empty if it does not.

    With `planned`, also where it is to be shown: it may be there already without that being recorded.
    """
    delivery = await ledger.store.read(lambda tx: tx.deliveries.get(channel, subject))
    return delivery.place if delivery is not None and (planned or delivery.shown != NEVER) else ""


async def show_again(ledger: Ledger, channel: str, subject: Subject) -> None:
    """Record that what a channel showed is gone, for example deleted. It is shown again if it is still pending.

    Its place is kept, since the channel may need part of it. If the request is settled before it is shown again, it is
    updated once more, because part of it may be there.
    """

    def work(tx: Transaction) -> None:
        delivery = tx.deliveries.get(channel, subject)
        if delivery is None or delivery.shown == NEVER:
            return
        live = delivery.live
        if subject.kind is SubjectKind.REQUEST and (request := readable(tx, subject.about)) is not None:
            live = Asked(request=request).is_live
        again = replace(delivery, state=DeliveryState.DUE, shown=NEVER, live=live, hopeless=False)
        again = replace(again, may_stand=not subject.is_of_run)
        tx.deliveries.put(replace(again, attempts=0, since=None, due=None, problem=""))

    await ledger.store.write("gone", work)


async def tell_result(
    ledger: Ledger, run_id: str, worker: str, state: RunState, text: str, *, secrets: Sequence[str] = ()
) -> Sequence[str]:
    """Announce the result of a run in every channel that showed something of it, or where it began.

    Returns the channels. A result is announced again only if it differs. Secrets are masked: the broker's, and
    `secrets`.
    """
    hidden = (*ledger.journal.secrets, *secrets)
    return await ledger.store.write("say", lambda tx: tell(tx, run_id, worker, state, text, hidden))


def tell_line(ledger: Ledger, run_id: str, message: RunMessage) -> None:
    """Announce a line from a run's tool in every channel that showed something of the run, or where it began.

    Safe to call from any thread. The same line of one call is announced once, even if the call is repeated after a
    pause.
    """
    ledger.store.later("message", lambda tx: tell_message(tx, run_id, message, ledger.journal.secrets))


async def running_channels(ledger: Ledger) -> Mapping[str, Lease]:
    """Return the channels that a live process runs now, and what is wrong with them, if anything."""
    now = ledger.now()

    def work(tx: Transaction) -> dict[str, Lease]:
        return {one.channel: one for one in tx.leases.all() if is_alive(tx.processes.get(one.process), now)}

    return await ledger.store.read(work)


async def troubles_of(ledger: Ledger, request_ids: Iterable[str]) -> Mapping[str, Sequence[Delivery]]:
    """Return failing deliveries for each of these requests that has any: those due with a problem.

    If a channel is down, its deliveries are included although nobody tried them.
    """
    ids, now = list(request_ids), ledger.now()

    def work(tx: Transaction) -> dict[str, Sequence[Delivery]]:
        down = [one for one in tx.leases.all() if one.down and is_alive(tx.processes.get(one.process), now)]
        found = {one: _troubles(tx, request, down) for one in ids if (request := readable(tx, one)) is not None}
        return {one: troubles for one, troubles in found.items() if troubles}

    return await ledger.store.read(work)


def _troubles(tx: Transaction, request: ApprovalRequest, down: Sequence[Lease]) -> list[Delivery]:
    subject = Subject(SubjectKind.REQUEST, request.id)
    there = {one.channel: one for one in tx.deliveries.find(request=request.id) if one.subject == subject}
    for lease in down:
        name = lease.channel
        known = there.get(name)
        if known is None:
            known = Delivery(channel=name, subject=subject, trail=trail_of(request))
        if known.state is DeliveryState.DUE and lease.down is not None:
            said = lease.down
            there[name] = replace(known, problem=said.problem, since=known.since or said.since, due=said.due)
    return [one for one in there.values() if one.state is DeliveryState.DUE and one.problem]
