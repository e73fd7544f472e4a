"""Apply time to requests: deadlines, reminders, escalation, and the death of processes that wait or hold claims."""

from __future__ import annotations

from datetime import datetime, timedelta

from signoff.broker.journal import Journal
from signoff.broker.ledger import Ledger
from signoff.broker.requests import found, lose, pause, put, settle
from signoff.broker.signatures import Signing
from signoff.broker.wall_clock import pause_for
from signoff.core.aap import HOLDER
from signoff.core.lifecycle import Cancelled, Event, Expired, Reminded
from signoff.core.quorum import who
from signoff.core.record import EventDraft
from signoff.core.request import ApprovalRequest, State
from signoff.errors import RequestError, StoreDamaged
from signoff.ports import Transaction
from signoff.processes import is_alive

EVERY = timedelta(seconds=5)
GONE = "nobody waits for it any more: the program that asked is gone, or was interrupted"
"""Why a request is withdrawn whose waiting process is gone."""


class Deadlines:
    """The part of the broker for deadlines. Any number of processes may sweep the same store at once."""

    def __init__(self, ledger: Ledger, signing: Signing) -> None:
        self._ledger = ledger
        self._signing = signing

    async def sweep(self) -> list[ApprovalRequest]:
        """Apply time; return what changed: expired, escalated, parked, reminded of, withdrawn or unknown."""
        ledger = self._ledger

        def look(tx: Transaction, now: datetime) -> list[str]:
            held = (*tx.queue.claimed(), *tx.queue.awaited())
            lost = [one for one, holder in held if _is_lost(tx, holder, ledger.process.id, now)]
            return list(dict.fromkeys((*tx.queue.due(now), *lost)))

        due = await ledger.read(look)
        if not due:
            return []

        def work(tx: Transaction, now: datetime) -> list[ApprovalRequest]:
            return [changed for one in due if (changed := _fed(tx, ledger, one, now)) is not None]

        return await ledger.write("sweep", work)

    async def sweep_forever(self) -> None:
        """Sweep every few seconds, until cancelled."""
        clock = self._ledger.clock
        while True:
            await self.sweep()
            await self._signing.sign_if_due()
            await pause_for(clock, EVERY)


def _fed(tx: Transaction, ledger: Ledger, request_id: str, now: datetime) -> ApprovalRequest | None:
    """As `feed`. A request that cannot be read stays as it is, and holds up no other."""
    try:
        return feed(tx, ledger, request_id, now)
    except StoreDamaged:
        return None


def _is_lost(tx: Transaction, holder: str, own: str, now: datetime) -> bool:
    """As `is_gone`. Of a process that cannot be read nobody can tell."""
    try:
        return is_gone(tx, holder, own, now)
    except StoreDamaged:
        return False


def feed(tx: Transaction, ledger: Ledger, request_id: str, now: datetime) -> ApprovalRequest | None:
    """Apply a deadline, a reminder or the death of a process to a request; None if nothing changed."""
    request, journal = found(tx, request_id), ledger.journal
    if request.state is State.CLAIMED:
        assert request.claim is not None, "a claimed request has a claim"
        if not is_gone(tx, request.claim.holder, ledger.process.id, now):
            return None
        if request.claim.inside:
            return pause(tx, journal, request, now)
        is_elsewhere = request.claim.holder.startswith(HOLDER)
        why = "its agent told no outcome" if is_elsewhere else "the process that ran it is gone"
        return lose(tx, journal, request, why, now)
    if has_no_waiter(tx, ledger, request, now):
        return settle(tx, journal, request, Cancelled(GONE), now)
    if request.state is not State.PENDING:
        return None
    deadline = due_at(ledger, request)
    event: Event = Expired() if deadline is not None and deadline <= now else Reminded()
    try:
        changed = put(tx, request, event, now)
    except RequestError:
        return None
    tx.record.append([_draft(journal, changed, event, now)])
    return changed


def due_at(ledger: Ledger, request: ApprovalRequest) -> datetime | None:
    """When the deadline of a request passes. It is later if the clock was set forward in this process meanwhile."""
    if request.deadline is None or request.opened_at is None:
        return request.deadline
    span = request.requirement.timeout
    began = request.opened_at if span is None else max(request.opened_at, request.deadline - span)
    return request.deadline + ledger.set_forward(began)


def _draft(journal: Journal, request: ApprovalRequest, event: Event, now: datetime) -> EventDraft:
    if isinstance(event, Reminded):
        return journal.step(request, "reminded", now)
    if request.state is not State.PENDING:
        return journal.settled(request, now)
    if request.deadline is None:
        return journal.step(request, "parked", now)
    needed = request.requirement
    return journal.step(request, "escalated", now, to=needed.role or "", needs=who(needed))


def has_no_waiter(tx: Transaction, ledger: Ledger, request: ApprovalRequest, now: datetime) -> bool:
    """Whether nobody would make the call any more: the process that waited for the answer is gone."""
    is_open = request.state in (State.PENDING, State.APPROVED)
    return is_open and bool(request.waiter) and is_gone(tx, request.waiter, ledger.process.id, now)


def is_gone(tx: Transaction, holder: str, own: str, now: datetime) -> bool:
    """Whether the holder of a claim, or whoever waits for an answer, is gone."""
    if holder.startswith(HOLDER):  # a remote agent: all that is known is what it reports
        row = tx.aap_requests.get(holder.removeprefix(HOLDER))
        return row is None or row.is_silent(now) or row.is_left(now)
    return holder != own and not is_alive(tx.processes.get(holder), now)
