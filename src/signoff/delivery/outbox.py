"""The outbox: what each channel has to show, and the state of each delivery.

Before something is shown for the first time, the store notes that it may be in the channel from now on. So nothing
in a channel is forgotten if the process crashes before it could record where.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import NamedTuple

from signoff.broker.comments import with_comments
from signoff.broker.ledger import Ledger
from signoff.broker.requests import found, put, readable
from signoff.core.delivery import NEVER, Delivery, DeliveryState
from signoff.core.lifecycle import FINAL, OPEN, Dated, advance, may_be_dated
from signoff.core.notice import Asked, Notice, Reminder, RunResult, Together, reminder_of
from signoff.core.request import ApprovalRequest, State
from signoff.core.subject import Subject, SubjectKind
from signoff.delivery.batches import Batches, all_shown
from signoff.delivery.leases import LONGEST_PROBLEM, check_lease
from signoff.delivery.routes import LONGEST_PAUSE, ActiveChannel, retry_pause
from signoff.errors import ChannelFailed, StoreDamaged
from signoff.ports import Transaction

TRY_CLOSING_FOR = timedelta(days=1)
"""Retry limit for the final state of a request that nobody waits for, and for the result of a run."""
RARELY = timedelta(hours=1)
SHORTENED = 0.1
"""Fraction of a channel's timeout that may pass until a notice is recorded as shown.

If more has passed, the timeout starts when it is recorded.
"""
LAST = 5
"""How many deliveries of a trail are read first to find the newest place."""


class Want(Enum):
    """What to do about a notice in a channel."""

    NOTHING = auto()
    SHOW = auto()
    """It is pending and not shown yet. Shown in order within a trail."""
    UPDATE = auto()
    """What is shown is out of date."""
    RETIRE = auto()
    """Nothing, ever again."""


def wanted(delivery: Delivery | None, version: int, *, waits: bool, is_settled: bool, is_over: bool) -> Want:
    """Return what to do, given the state of a delivery."""
    if delivery is None:
        return Want.SHOW if waits else Want.NOTHING
    if not delivery.live:
        return Want.NOTHING
    if delivery.shown != NEVER:
        if delivery.shown != version:
            return Want.UPDATE
    elif waits:
        return Want.SHOW
    elif is_settled and delivery.may_stand:
        return Want.UPDATE
    return Want.RETIRE if is_over else Want.NOTHING


def wanted_of_request(delivery: Delivery | None, request: ApprovalRequest) -> Want:
    """Return what to do about one request."""
    waits = request.state in OPEN
    return wanted(delivery, request.version, waits=waits, is_settled=not waits, is_over=request.state in FINAL)


def wanted_of_batch(delivery: Delivery | None, requests: Sequence[ApprovalRequest], *, are_shown: bool) -> Want:
    """Return what to do about a batch of requests. `are_shown`: whether each pending one is shown."""
    pending = any(one.state is State.PENDING for one in requests)
    version = sum(one.version for one in requests)
    return wanted(delivery, version, waits=pending and are_shown, is_settled=not pending, is_over=not pending)


def wanted_of_reminder(delivery: Delivery | None) -> Want:
    """Return what to do about a due reminder for a request that is shown."""
    return Want.SHOW if delivery is None or (delivery.live and delivery.state is DeliveryState.DUE) else Want.NOTHING


def may_be_reminded(card: Delivery | None, request: ApprovalRequest) -> bool:
    """Whether people may be sent to a request's card: it shows what they can do now, or never will."""
    return card is not None and card.shown != NEVER and (card.shown == request.version or card.hopeless)


def retry_time(delivery: Delivery | None, *, waits: bool) -> datetime | None:
    """Return when to try again at the earliest; None if at once.

    An update that was refused is tried ever more rarely, at last once an hour: somebody may fix it. But while people
    have to see it, every minute, whatever was refused before they had to.
    """
    if delivery is None or delivery.due is None or waits or not delivery.hopeless or delivery.attempts < 2:
        return delivery.due if delivery is not None else None
    pause = timedelta(seconds=LONGEST_PAUSE)
    return delivery.due + min(pause * 2 ** min(delivery.attempts - 1, 10), RARELY) - pause


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What is handed to a channel, and what must be known afterwards."""

    notice: Notice | Reminder
    want: Want
    place: str
    """Where it is shown, or where part of it may be."""
    beside: str
    before: Delivery | None
    """The delivery before this attempt."""
    version: int
    """The stored version. The notice may be one ahead, by the deadline that it gets when it is shown."""
    deadline: datetime | None = None
    """The deadline that it gets."""

    @property
    def is_first(self) -> bool:
        """Whether it was never reported as shown."""
        return self.before is None or self.before.shown == NEVER

    @property
    def may_be_known(self) -> bool:
        """Whether people may have seen it from an earlier attempt whose outcome is unknown."""
        before = self.before
        if before is None or not before.may_stand:
            return False
        return before.attempts > 0 or not before.place  # otherwise it was removed, and is shown again


class NotShown(NamedTuple):
    """The consequences of a notice that was not shown."""

    holds: bool = False
    """Whether later notices of its trail must wait for it."""
    given_up: bool = False
    """Whether it is never retried."""


class Outbox:
    """The store transactions before and after each delivery attempt."""

    def __init__(self, ledger: Ledger, batches: Batches) -> None:
        self._ledger = ledger
        self._batches = batches

    def begin(self, tx: Transaction, active: ActiveChannel, subject: Subject, now: datetime) -> Attempt | None:
        """Record the start of an attempt and return it, or None if there is nothing to show any more."""
        check_lease(tx, self._ledger, active.name)
        known = tx.deliveries.get(active.name, subject)
        notice, want = None, Want.NOTHING
        with suppress(StoreDamaged):  # what a person may not see whole is not shown
            notice, want = self._notice(tx, active, subject, known)
        if notice is None:
            return None
        if known is None or (known.shown == NEVER and not known.may_stand):
            fresh = known or _fresh(active.name, notice)
            if (noted := _may_stand(fresh)) != known:
                tx.deliveries.put(noted)
        version, deadline = notice.version, None
        if isinstance(notice, Asked) and active.route.timeout is not None and (known is None or known.shown == NEVER):
            if may_be_dated(notice.request):
                deadline = now + active.route.timeout
                notice = replace(notice, request=advance(notice.request, Dated(deadline), now))
        return Attempt(
            notice=notice,
            want=want,
            place=known.place if known is not None else "",
            beside=_beside(tx, active.name, notice),
            before=known,
            version=version,
            deadline=deadline,
        )

    def _notice(
        self, tx: Transaction, active: ActiveChannel, subject: Subject, known: Delivery | None
    ) -> tuple[Notice | Reminder | None, Want]:
        """Return the notice to show and what to do with it; None if there is nothing to show."""
        notice: Notice | Reminder | None = None
        want = Want.NOTHING
        if subject.is_of_run:
            if known is not None and known.live and known.state is DeliveryState.DUE:
                notice, want = known.result, Want.SHOW
        elif (request := readable(tx, subject.about)) is not None:
            ids = self._batches.of(tx, request)
            if subject.kind is SubjectKind.REMINDER:
                card, reminder = tx.deliveries.get(active.name, _card(request.id)), reminder_of(request)
                if reminder is not None and reminder.key == subject and may_be_reminded(card, request):
                    notice, want = reminder, wanted_of_reminder(known)
            elif subject.kind is SubjectKind.BATCH:
                members = tuple(one for each in ids if (one := readable(tx, each)) is not None)
                are_shown = all_shown(members, {one: tx.deliveries.get(active.name, _card(one)) for one in ids})
                notice, want = Together(requests=members), wanted_of_batch(known, members, are_shown=are_shown)
            else:
                want = wanted_of_request(known, request)
                notice = Asked(request=with_comments(tx, request), number=ids.index(request.id) + 1, of=len(ids))
        return (notice, want) if want in (Want.SHOW, Want.UPDATE) else (None, want)

    def shown(self, tx: Transaction, active: ActiveChannel, attempt: Attempt, place: str, now: datetime) -> None:
        """Record that a notice is shown. The deadline that was shown with it becomes the request's deadline.

        If showing took so long that people would have too little time, the timeout starts now, and an update shows
        that.
        """
        check_lease(tx, self._ledger, active.name)
        notice, version = attempt.notice, attempt.version
        if isinstance(notice, Asked) and attempt.deadline is not None and active.route.timeout is not None:
            stored = found(tx, notice.request.id)
            if may_be_dated(stored):
                deadline = attempt.deadline
                if deadline - now >= active.route.timeout * (1 - SHORTENED):
                    version = notice.version  # not the stored version: if that changed meanwhile, it is shown again
                else:
                    deadline = now + active.route.timeout
                dated = put(tx, stored, Dated(deadline), now)
                said = {"deadline": deadline.isoformat(), "channel": active.name}
                tx.record.append([self._ledger.journal.step(dated, "dated", now, **said)])
        known = tx.deliveries.get(active.name, notice.key) or _fresh(active.name, notice)
        if not attempt.is_first and known.shown == NEVER:  # it was removed meanwhile
            tx.deliveries.put(replace(known, place=place))
            return
        done = replace(known, state=DeliveryState.SHOWN, place=place, shown=version, live=notice.is_live)
        done = replace(done, may_stand=False, hopeless=False, attempts=0, since=None, due=None, problem="")
        if isinstance(notice, RunResult) and known.result != notice:  # there is a different result to show by now
            done = replace(known, place=place)
        tx.deliveries.put(done)
        if isinstance(notice, Asked) and attempt.is_first and (told := reminder_of(notice.request)) is not None:
            # People who see it only now need no reminder at once.
            if place != attempt.place and not attempt.may_be_known:
                there = replace(_fresh(active.name, told), state=DeliveryState.SHOWN, place=place, shown=told.version)
                tx.deliveries.put(there)
            elif (kept := tx.deliveries.get(active.name, told.key)) is not None:
                tx.deliveries.put(replace(kept, live=True))  # it was retired when the card was thought to be gone

    def failed(
        self,
        tx: Transaction,
        active: ActiveChannel,
        attempt: Attempt,
        failure: ChannelFailed,
        now: datetime,
        *,
        known: bool,
    ) -> NotShown:
        """Record that a notice was not shown, as far as is known, and when to retry.

        The result of a run is retried for a day, since somebody may fix the cause. `known`: whether the channel itself
        reported the failure, instead of timing out or crashing.
        """
        check_lease(tx, self._ledger, active.name)
        notice = attempt.notice
        row = tx.deliveries.get(active.name, notice.key) or _fresh(active.name, notice)
        before = attempt.before is not None and attempt.before.may_stand
        stands = before or not known or bool(failure.at)
        if not attempt.is_first:  # it was reported as shown, unless it was reported gone meanwhile
            stands = row.shown == NEVER
        over = not failure.again and not failure.whole
        row = replace(
            row,
            may_stand=stands and not isinstance(notice, RunResult),
            hopeless=over and not isinstance(notice, RunResult),
            place=failure.at or row.place,
            attempts=row.attempts + 1,
            since=row.since or now,
            problem=self._ledger.journal.text(str(failure), longest=LONGEST_PROBLEM),
        )
        row = replace(row, due=None if failure.whole else now + retry_pause(failure, row.attempts))
        if attempt.want is Want.UPDATE:
            tx.deliveries.put(replace(row, live=row.live and (notice.is_live or not _is_left(row, now))))
            return NotShown()
        given_up = isinstance(notice, RunResult) and _is_left(row, now)
        tx.deliveries.put(replace(row, state=DeliveryState.FAILED, live=False) if given_up else row)
        return NotShown(holds=failure.again and not isinstance(notice, Reminder), given_up=given_up)

    def retire(self, tx: Transaction, channel: str, subject: Subject) -> None:
        """Mark a delivery as finished: nothing more will be shown about it."""
        if (known := tx.deliveries.get(channel, subject)) is not None and known.live:
            tx.deliveries.put(replace(known, live=False))


def _is_left(row: Delivery, now: datetime) -> bool:
    """Whether it failed for so long that it is left as it is: nobody waits for it."""
    return row.since is not None and now - row.since >= TRY_CLOSING_FOR


def _fresh(channel: str, notice: Notice | Reminder) -> Delivery:
    return Delivery(channel=channel, subject=notice.key, trail=notice.trail)


def _card(request_id: str) -> Subject:
    return Subject(SubjectKind.REQUEST, request_id)


def _may_stand(delivery: Delivery) -> Delivery:
    """Return a delivery that may be in the channel from now on. A run's result is not marked: it is shown once more."""
    return replace(delivery, may_stand=not delivery.subject.is_of_run, hopeless=False)


def _beside(tx: Transaction, channel: str, notice: Notice | Reminder) -> str:
    """Return the place of the newest notice of the trail in this channel, or the place where its run began.

    For a reminder or a batch: the place of its card, or of the batch's first card. Reminders themselves do not count,
    since they stay where they are when their card moves.
    """
    if isinstance(notice, Reminder | Together):
        first = notice.request if isinstance(notice, Reminder) else notice.requests[0]
        if (card := tx.deliveries.get(channel, _card(first.id))) is not None and card.place:
            return card.place
    limit, found = LAST, 0
    while True:
        rows = tx.deliveries.last(channel=channel, trail=notice.trail, limit=limit)
        for one in rows[found:]:
            if one.place and one.subject != notice.key and one.subject.kind is not SubjectKind.REMINDER:
                return one.place
        if len(rows) < limit:
            break
        limit, found = limit * 10, len(rows)
    run = tx.runs.get(notice.trail)
    return run.places.get(channel, "") if run is not None else ""
