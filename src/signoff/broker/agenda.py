"""What is to be shown in which channel, and in which order; found by comparing what stands there with what there is."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from signoff.broker.batches import Batches
from signoff.broker.leases import Down
from signoff.broker.routes import PATIENCE, Line
from signoff.broker.showing import (
    Want,
    is_eligible,
    is_hopeless,
    may_be_handed_over,
    wanted_of_batch,
    wanted_of_reminder,
    wanted_of_request,
)
from signoff.broker.unknown import unknown_requests
from signoff.core.delivery import NEVER, Delivery, DeliveryState
from signoff.core.lifecycle import OPEN
from signoff.core.notice import is_reminder, reminder_of, request_in, trail_of
from signoff.core.request import ApprovalRequest, State
from signoff.ports import Transaction

AT_ONCE = 5
"""How much of a trail is done before the next look: what has changed meanwhile comes first then."""
_LONG_AGO = datetime.min.replace(tzinfo=UTC)

Rows = dict[str, Delivery]
"""Live deliveries of a channel, by subject."""


class Job(NamedTuple):
    """One thing that may have to be done in one channel."""

    place: tuple[int, datetime, int]
    """Where it stands in its trail."""
    subject: str
    want: Want
    row: Delivery | None


class Left(NamedTuple):
    """What a channel does not show any longer."""

    channel: str
    trail: str
    subject: str


@dataclass(slots=True)
class Plan:
    """What is to be done now, and when to look again at the latest."""

    work: dict[tuple[str, str], list[str]] = field(default_factory=dict[tuple[str, str], list[str]])
    """Subjects by channel and trail, each in order."""
    given_up: list[Left] = field(default_factory=list[Left])
    """What a backup is to show."""
    retired: list[Left] = field(default_factory=list[Left])
    """What nothing more will be told of."""
    moment: datetime | None = None
    due: datetime | None = None
    """When time does something to what waits: a deadline, or a reminder."""

    def not_before(self, moment: datetime | None) -> None:
        """Something may be done at a moment."""
        if moment is not None:
            self.moment = min(self.moment, moment) if self.moment is not None else moment


class Agenda:
    """Knows what may have to be shown. Reads only the trails in which something changed since it looked last."""

    def __init__(self, lines: Mapping[str, Line], batches: Batches) -> None:
        self._lines = lines
        self._batches = batches
        self._names = {name for line in lines.values() for name in (line.name, line.route.backup_for) if name}
        self._requests: dict[str, dict[str, ApprovalRequest]] = {}
        """By trail: those that wait, or of which something stands in a channel."""
        self._rows: dict[str, dict[str, Rows]] = {}
        """By trail and channel."""
        self._jobs: dict[str, dict[str, list[Job]]] = {}
        """By channel and trail, where there are any."""
        self._touched = deque[str]()
        """Trails to be read with the next look, which may be made by another thread."""
        self._pending: set[str] = set()
        """Those that no look has come to the end with yet: it may be cut short, and made again."""
        self._seen: int | None = None

    def start_over(self) -> None:
        """Read everything with the next look."""
        self._seen = None

    def touch(self, trail: str) -> None:
        """Deliveries of a trail have changed."""
        self._touched.append(trail)

    def look(self, tx: Transaction, now: datetime) -> Plan:
        """What is to be done now."""
        while self._touched:
            self._pending.add(self._touched.popleft())
        head = tx.record.head()[0]
        if self._seen is None:
            trails = self._read_all(tx)
        else:
            trails = set(self._pending)
            self._read_changed(tx, trails, tx.record.touched(self._seen))
        for trail in trails:
            self._sort_out(tx, trail)
        self._seen = head
        self._pending.clear()
        plan = Plan(due=self._due())
        for line in self._lines.values():
            self._planned(plan, line, self._jobs.get(line.name, {}), now)
        return plan

    def _due(self) -> datetime | None:
        waiting = (one for known in self._requests.values() for one in known.values() if one.state is State.PENDING)
        moments = (moment for one in waiting for moment in (one.deadline, one.remind_at) if moment is not None)
        return min(moments, default=None)

    def _read_all(self, tx: Transaction) -> set[str]:
        self._requests, self._rows, self._jobs = {}, {}, {name: {} for name in self._lines}
        self._batches.forget_all()
        for name in self._names:
            for one in tx.deliveries.find(channel=name, live=True):
                rows = self._rows.setdefault(one.trail, {}).setdefault(name, {})
                rows[one.subject] = one
        for request in (*tx.queue.open(), *unknown_requests(tx)):
            self._requests.setdefault(trail_of(request), {})[request.id] = request
        return {*self._rows, *self._requests}

    def _read_changed(self, tx: Transaction, trails: set[str], ids: Iterable[str]) -> None:
        """Read these trails again, and those of requests that changed, which are added."""
        for request_id in ids:
            if (request := tx.requests.get(request_id)) is not None:
                trail = trail_of(request)
                known = self._requests.setdefault(trail, {})
                if request_id not in known:
                    self._batches.forget(trail)
                known[request_id] = request
                trails.add(trail)
        for trail in trails:
            found = {name: tx.deliveries.find(channel=name, trail=trail, live=True) for name in self._names}
            self._rows[trail] = {name: {one.subject: one for one in rows} for name, rows in found.items() if rows}

    def _sort_out(self, tx: Transaction, trail: str) -> None:
        """What is to be done about a trail."""
        known, rows = self._requests.setdefault(trail, {}), self._rows.setdefault(trail, {})
        live = {request_in(one) for each in rows.values() for one in each} - {""}
        for request_id in live - known.keys():
            if (request := tx.requests.get(request_id)) is not None:
                known[request_id] = request
        for request_id in [one.id for one in known.values() if one.state not in OPEN and one.id not in live]:
            del known[request_id]
        for line in self._lines.values():
            jobs = [job for job in self._jobs_of(tx, line, known.values(), rows) if job.want is not Want.NOTHING]
            if jobs:
                self._jobs[line.name][trail] = sorted(jobs, key=lambda job: job.place)
            else:
                self._jobs[line.name].pop(trail, None)
        if not known and not any(rows.values()):
            del self._requests[trail], self._rows[trail]
            self._batches.forget(trail)

    def _jobs_of(
        self, tx: Transaction, line: Line, requests: Iterable[ApprovalRequest], rows: Mapping[str, Rows]
    ) -> Iterator[Job]:
        """What may have to be done in a channel about a trail."""
        there, main = rows.get(line.name, {}), rows.get(line.route.backup_for, {})
        batches: dict[tuple[str, ...], ApprovalRequest] = {}
        coming: set[str] = set()
        reminders: set[str] = set()
        for request in requests:
            row = there.get(request.id)
            want = wanted_of_request(row, request, eligible=is_eligible(line, main.get(request.id)))
            ids = self._batches.of(tx, request)
            if want is Want.SHOW:
                coming.add(request.id)
            if len(ids) > 1:
                batches[ids] = request
            yield Job((0, request.opened_at or _LONG_AGO, ids.index(request.id)), request.id, want, row)
            reminder = reminder_of(request)
            if reminder is not None and line.reminds and _stands(there, request.id):
                reminders.add(reminder.subject)
                told = there.get(reminder.subject)
                # Behind everything else: nothing else waits for it.
                yield Job((2, request.opened_at or _LONG_AGO, 0), reminder.subject, wanted_of_reminder(told), told)
        for ids, request in batches.items():
            row = there.get(f"all:{ids[0]}")
            members = [one for each in ids if (one := tx.requests.get(each)) is not None]
            stand = all(one.state is not State.PENDING or one.id in coming or _stands(there, one.id) for one in members)
            want = wanted_of_batch(row, members, are_shown=stand)
            yield Job((0, request.opened_at or _LONG_AGO, len(ids)), f"all:{ids[0]}", want, row)
        for subject, row in there.items():
            if subject.startswith("said:"):
                want = Want.SHOW if row.state is DeliveryState.DUE else Want.RETIRE
                yield Job((1, _LONG_AGO, 0), subject, want, row)
            elif is_reminder(subject) and subject not in reminders:
                yield Job((2, _LONG_AGO, 0), subject, Want.RETIRE, row)

    def _planned(self, plan: Plan, line: Line, trails: Mapping[str, list[Job]], now: datetime) -> None:
        """Put down what of it is to be done now, or when."""
        down = line.down  # it may change while this looks
        can_try = line.is_open and line.wrong is None and not line.rests(now)
        if line.wrong is None and down is not None:
            plan.not_before(down.next_at)
        for trail, jobs in sorted(trails.items(), key=lambda one: one[1][0].place):
            if trail in line.busy:
                continue
            plan.retired += [Left(line.name, trail, job.subject) for job in jobs if job.want is Want.RETIRE]
            updates = [*_rested(plan, [job for job in jobs if job.want is Want.UPDATE], now, in_order=False)]
            shows = [job for job in jobs if job.want is Want.SHOW]
            if can_try and down is not None and not line.busy:
                # One is tried, whatever else: it is enough to hear whether the channel works again.
                if probe := [*updates, *_rested(plan, shows, now, in_order=True)][:1]:
                    plan.work[line.name, trail] = [probe[0].subject]
                    can_try = False
                    continue
            if line.backup and line.was_tried:
                shows = _without_given_up(plan, line, down, trail, shows, now)
            ready = [*updates, *_rested(plan, shows, now, in_order=True)]
            if ready and can_try and down is None:
                plan.work[line.name, trail] = [job.subject for job in ready[:AT_ONCE]]


def _without_given_up(
    plan: Plan, line: Line, down: Down | None, trail: str, jobs: Sequence[Job], now: datetime
) -> list[Job]:
    """Those that are still to be tried here: what failed for too long is shown by the backup instead."""
    left: list[Job] = []
    head = jobs[0].row.since if jobs and jobs[0].row is not None else None
    if head is not None and line.worked_at is not None and line.worked_at >= head:
        head = None  # the channel works, and what waits behind the first may fare better
    for job in jobs:
        own = job.row.since if job.row is not None else None
        whole = down.since if down is not None else None
        since = min((one for one in (own, head, whole) if one is not None), default=None)
        hopeless = line.wrong is not None or (down is not None and down.hopeless)
        if not may_be_handed_over(job.subject) or (since is None and not hopeless):
            left.append(job)
        elif hopeless or (since is not None and now - since >= PATIENCE):
            plan.given_up.append(Left(line.name, trail, job.subject))
        else:
            plan.not_before(since + PATIENCE if since is not None else None)
            left.append(job)
    return left


def _rested(plan: Plan, jobs: Sequence[Job], now: datetime, *, in_order: bool) -> Iterator[Job]:
    """Those that may be tried now. In order, one that has to wait holds up all after it, unless it is hopeless."""
    left_out: set[datetime] = set()
    for job in jobs:
        if job.subject.startswith("all:") and job.place[1] in left_out:
            continue  # one of them does not stand there
        if job.row is None or job.row.next_at is None or job.row.next_at <= now:
            yield job
            continue
        plan.not_before(job.row.next_at)
        if in_order and not is_hopeless(job.row):
            return
        left_out.add(job.place[1])


def _stands(there: Rows, request_id: str) -> bool:
    row = there.get(request_id)
    return row is not None and row.shown != NEVER
