"""Plan what to show in which channel and in which order, by comparing deliveries with the stored requests.

A trail is what belongs together and is shown in order: a run, otherwise a conversation, otherwise one request.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from signoff.broker.requests import readable
from signoff.broker.unknown_outcomes import unknown_requests
from signoff.core.delivery import NEVER, Delivery, DeliveryState
from signoff.core.lifecycle import OPEN
from signoff.core.notice import reminder_of, trail_of
from signoff.core.request import ApprovalRequest, State
from signoff.core.subject import Subject, SubjectKind
from signoff.delivery.batches import Batches
from signoff.delivery.outbox import (
    Want,
    may_be_reminded,
    retry_time,
    wanted_of_batch,
    wanted_of_reminder,
    wanted_of_request,
)
from signoff.delivery.routes import ActiveChannel
from signoff.ports import Transaction

AT_ONCE = 5
"""Maximum notices of a trail for each look, so that newer changes come first."""
_LONG_AGO = datetime.min.replace(tzinfo=UTC)

Rows = dict[Subject, Delivery]
"""Live deliveries of a channel, by subject."""


class PlannedDelivery(NamedTuple):
    """One thing to do in one channel."""

    place: tuple[int, datetime, int]
    """Its position within its trail, for sorting."""
    subject: Subject
    want: Want
    row: Delivery | None
    waits: bool = True
    """Whether people have to see it."""


class NoLongerShown(NamedTuple):
    """A delivery that a channel no longer makes."""

    channel: str
    trail: str
    subject: Subject


@dataclass(slots=True)
class DeliveryPlan:
    """What to do now, and when to look again at the latest."""

    work: dict[tuple[str, str], list[Subject]] = field(default_factory=dict[tuple[str, str], list[Subject]])
    """Subjects by channel and trail, in order."""
    retired: list[NoLongerShown] = field(default_factory=list[NoLongerShown])
    """Deliveries that are finished."""
    moment: datetime | None = None
    due: datetime | None = None
    """The next deadline or reminder of a pending request."""
    waits_for_busy: bool = False
    """Whether something was left out because its trail has an attempt in progress."""

    def not_before(self, moment: datetime | None) -> None:
        """Note that something can be done at a moment."""
        if moment is not None:
            self.moment = min(self.moment, moment) if self.moment is not None else moment


class Planner:
    """Plans deliveries. It reads only the trails in which something changed since the last look."""

    def __init__(self, channels: Mapping[str, ActiveChannel], batches: Batches) -> None:
        self._channels = channels
        self._batches = batches
        self._requests: dict[str, dict[str, ApprovalRequest]] = {}
        """By trail: requests that are open or have live deliveries."""
        self._rows: dict[str, dict[str, Rows]] = {}
        """By trail and channel."""
        self._jobs: dict[str, dict[str, list[PlannedDelivery]]] = {}
        """By channel and trail, without empty ones."""
        self._seen: int | None = None
        """Sequence number of the last audit event that was read; None to read everything."""
        self._changed = 0
        """Number of the last change of a delivery that was read."""

    def start_over(self) -> None:
        """Read everything again with the next look."""
        self._seen = None

    def look(self, tx: Transaction, now: datetime) -> DeliveryPlan:
        """Return what to do now."""
        head = tx.record.head()[0]
        changes = tx.deliveries.changes(after=self._changed if self._seen is not None else sys.maxsize)
        if self._seen is not None and (head < self._seen or changes.last < self._changed):
            self._seen = None  # entries are missing: the server lost some, or a backup was restored
        if self._seen is None:
            trails = self._read_all(tx)
        else:
            trails = set(changes.trails)
            self._read_changed(tx, trails, tx.record.touched(self._seen))
        for trail in trails:
            self._sort_out(tx, trail)
        self._seen, self._changed = head, changes.last  # last, so that an interrupted look is repeated
        plan = DeliveryPlan(due=self._due())
        for active in self._channels.values():
            self._planned(plan, active, self._jobs.get(active.name, {}), now)
        return plan

    def _due(self) -> datetime | None:
        waiting = (one for known in self._requests.values() for one in known.values() if one.state is State.PENDING)
        moments = (moment for one in waiting for moment in (one.deadline, one.remind_at) if moment is not None)
        return min(moments, default=None)

    def _read_all(self, tx: Transaction) -> set[str]:
        self._requests, self._rows, self._jobs = {}, {}, {name: {} for name in self._channels}
        self._batches.forget_all()
        for name in self._channels:
            for one in tx.deliveries.find(channel=name, live=True):
                rows = self._rows.setdefault(one.trail, {}).setdefault(name, {})
                rows[one.subject] = one
        for request in (*tx.queue.open(), *unknown_requests(tx)):
            self._requests.setdefault(trail_of(request), {})[request.id] = request
        return {*self._rows, *self._requests}

    def _read_changed(self, tx: Transaction, trails: set[str], ids: Iterable[str]) -> None:
        """Read these trails and the requests in `ids` again; their trails are added to `trails`."""
        for request_id in ids:
            if (request := readable(tx, request_id)) is not None:
                trail = trail_of(request)
                known = self._requests.setdefault(trail, {})
                if request_id not in known:
                    self._batches.forget(trail)
                known[request_id] = request
                trails.add(trail)
        for trail in trails:
            found = {name: tx.deliveries.find(channel=name, trail=trail, live=True) for name in self._channels}
            self._rows[trail] = {name: {one.subject: one for one in rows} for name, rows in found.items() if rows}

    def _sort_out(self, tx: Transaction, trail: str) -> None:
        """Plan one trail."""
        known, rows = self._requests.setdefault(trail, {}), self._rows.setdefault(trail, {})
        live = {one.request for each in rows.values() for one in each} - {""}
        for request_id in live - known.keys():
            if (request := readable(tx, request_id)) is not None:
                known[request_id] = request
        for request_id in [one.id for one in known.values() if one.state not in OPEN and one.id not in live]:
            del known[request_id]
        for active in self._channels.values():
            jobs = [job for job in self._jobs_of(tx, active, known.values(), rows) if job.want is not Want.NOTHING]
            if jobs:
                self._jobs[active.name][trail] = sorted(jobs, key=lambda job: job.place)
            else:
                self._jobs[active.name].pop(trail, None)
        if not known and not any(rows.values()):
            del self._requests[trail], self._rows[trail]
            self._batches.forget(trail)

    def _jobs_of(
        self, tx: Transaction, active: ActiveChannel, requests: Iterable[ApprovalRequest], rows: Mapping[str, Rows]
    ) -> Iterator[PlannedDelivery]:
        """Yield what may have to be done in a channel for one trail."""
        there = rows.get(active.name, {})
        batches: dict[tuple[str, ...], ApprovalRequest] = {}
        coming: set[str] = set()
        reminders: set[Subject] = set()
        for request in requests:
            card = Subject(SubjectKind.REQUEST, request.id)
            row = there.get(card)
            want = wanted_of_request(row, request)
            ids = self._batches.of(tx, request)
            if want is Want.SHOW:
                coming.add(request.id)
            if len(ids) > 1:
                batches[ids] = request
            place = (0, request.opened_at or _LONG_AGO, ids.index(request.id))
            yield PlannedDelivery(place, card, want, row, request.state in OPEN)
            reminder = reminder_of(request)
            if reminder is not None and active.reminds and _stands(there, request.id):
                reminders.add(reminder.key)
                told = there.get(reminder.key)
                if may_be_reminded(row, request):
                    # Last, since nothing else waits for it.
                    place = (2, request.opened_at or _LONG_AGO, 0)
                    yield PlannedDelivery(place, reminder.key, wanted_of_reminder(told), told)
        for ids, request in batches.items():
            subject = Subject(SubjectKind.BATCH, ids[0])
            row = there.get(subject)
            members = [one for each in ids if (one := readable(tx, each)) is not None]
            stand = all(one.state is not State.PENDING or one.id in coming or _stands(there, one.id) for one in members)
            want = wanted_of_batch(row, members, are_shown=stand)
            pending = any(one.state is State.PENDING for one in members)
            yield PlannedDelivery((0, request.opened_at or _LONG_AGO, len(ids)), subject, want, row, pending)
        for subject, row in there.items():
            if subject.is_of_run:
                want = Want.SHOW if row.state is DeliveryState.DUE else Want.RETIRE
                yield PlannedDelivery((1, _LONG_AGO, int(subject.kind is SubjectKind.RESULT)), subject, want, row)
            elif subject.kind is SubjectKind.REMINDER and subject not in reminders:
                yield PlannedDelivery((2, _LONG_AGO, 0), subject, Want.RETIRE, row)

    def _planned(
        self, plan: DeliveryPlan, active: ActiveChannel, trails: Mapping[str, list[PlannedDelivery]], now: datetime
    ) -> None:
        """Add to the plan what can be done now, or when it can be."""
        down = active.down  # another thread may change it
        can_try = active.is_open and active.wrong is None and not active.rests(now)
        if active.wrong is None and down is not None:
            plan.not_before(down.due)
        for trail, jobs in sorted(trails.items(), key=lambda one: one[1][0].place):
            if trail in active.busy:
                plan.waits_for_busy = True
                continue
            plan.retired += [NoLongerShown(active.name, trail, job.subject) for job in jobs if job.want is Want.RETIRE]
            updates = [*_rested(plan, [job for job in jobs if job.want is Want.UPDATE], now, in_order=False)]
            shows = [job for job in jobs if job.want is Want.SHOW]
            if can_try and down is not None and not active.busy:
                # While a channel is down, one probe is enough to find out whether it works again.
                if probe := [*updates, *_rested(plan, shows, now, in_order=True)][:1]:
                    plan.work[active.name, trail] = [probe[0].subject]
                    can_try = False
                    continue
            ready = [*updates, *_rested(plan, shows, now, in_order=True)]
            if ready and can_try and down is None:
                plan.work[active.name, trail] = [job.subject for job in ready[:AT_ONCE]]


def _rested(
    plan: DeliveryPlan, jobs: Sequence[PlannedDelivery], now: datetime, *, in_order: bool
) -> Iterator[PlannedDelivery]:
    """Yield what may be tried now. With `in_order`, one in backoff blocks all after it, unless it is hopeless."""
    left_out: set[datetime] = set()
    for job in jobs:
        if job.subject.kind is SubjectKind.BATCH and job.place[1] in left_out:
            continue  # one of its cards is not shown
        due = retry_time(job.row, waits=job.waits)
        if job.row is None or due is None or due <= now:
            yield job
            continue
        plan.not_before(due)
        if in_order and not job.row.hopeless:
            return
        left_out.add(job.place[1])


def _stands(there: Rows, request_id: str) -> bool:
    row = there.get(Subject(SubjectKind.REQUEST, request_id))
    return row is not None and row.shown != NEVER
