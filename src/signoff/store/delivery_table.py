"""The tables of channels: what is shown in each, and which process runs it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any, NamedTuple

from signoff.core.delivery import Delivery, DeliveryState
from signoff.core.lease import Lease, Outage
from signoff.core.notice import RunResult
from signoff.core.run import RunState
from signoff.core.subject import Occasion, Subject, SubjectKind
from signoff.store.tables import EPOCH, Row, RowReader, Table, moment, put, told


def _occasion(subject: Subject) -> Occasion | str:
    return subject.occasion or ""


_DELIVERY: Mapping[str, tuple[Any, Callable[[Delivery], Any]]] = {
    "channel": (str, attrgetter("channel")),
    "kind": (SubjectKind, attrgetter("subject.kind")),
    "about": (str, attrgetter("subject.about")),
    "occasion": (Occasion, lambda delivery: _occasion(delivery.subject)),
    "trail": (str, attrgetter("trail")),
    "state": (DeliveryState, attrgetter("state")),
    "place": (str, attrgetter("place")),
    "shown": (int, attrgetter("shown")),
    "live": (bool, attrgetter("live")),
    "may_stand": (bool, attrgetter("may_stand")),
    "hopeless": (bool, attrgetter("hopeless")),
    "attempts": (int, attrgetter("attempts")),
    "since": (datetime | None, attrgetter("since")),
    "due": (datetime | None, attrgetter("due")),
    "problem": (str, attrgetter("problem")),
    "run_state": (RunState, lambda delivery: delivery.result.state if delivery.result is not None else ""),
    "worker": (str, lambda delivery: delivery.result.worker if delivery.result is not None else ""),
    "result": (str, lambda delivery: delivery.result.text if delivery.result is not None else ""),
}
"""The columns of a delivery: the type of each, and how it is taken from one."""
_FOUND_BY = ("channel", "kind", "about", "occasion")
_CHANGES = ", ".join(f"{name} = excluded.{name}" for name in (*_DELIVERY, "change") if name not in _FOUND_BY)
_PUT = (
    f"insert into {{s}}deliveries ({', '.join(_DELIVERY)}, change) values ({', '.join('?' * len(_DELIVERY))}, "
    "(select coalesce(max(change), 0) + 1 from {s}deliveries)) "
    f"on conflict ({', '.join(_FOUND_BY)}) do update set {_CHANGES}"
)


class DeliveryChanges(NamedTuple):
    """Deliveries that were changed."""

    last: int
    """Number of the latest change."""
    trails: Sequence[str]
    """Trails with a changed delivery, each once."""


class Deliveries(Table):
    """The state of each notice in each channel."""

    def get(self, channel: str, subject: Subject) -> Delivery | None:
        condition = " and ".join(f"{name} = ?" for name in _FOUND_BY)
        found = self._where(condition, channel, subject.kind, subject.about, _occasion(subject))
        return found[0] if found else None

    def _where(self, condition: str, *values: Any) -> list[Delivery]:
        rows = self._rows(f"select {delivery_of.names} from {{s}}deliveries where {condition}", *values)
        return [delivery_of(row) for row in rows]

    def put(self, delivery: Delivery) -> None:
        """Store the state of a delivery, by its channel and subject. A new one is ordered after all others."""
        self._run(_PUT, *delivery_columns(delivery))

    def find(self, *, channel: str = "", trail: str = "", request: str = "", live: bool = False) -> Sequence[Delivery]:
        """Deliveries in the order they were first stored; all given filters must match.

        Deliveries of a request are those of the request itself and of its reminders.
        """
        # A request has few deliveries and a channel has most of them, so the first given of these finds them by its
        # index, and the others are written so that no index is used for them.
        given = {
            "about = ? and kind in ('request', 'reminder')": request,
            "? in ('', trail)" if request else "trail = ?": trail,
            "? in ('', channel)": channel,
        }
        conditions = [condition for condition, value in given.items() if value]
        if live:
            conditions.append("live >= 1" if request else "live = 1")
        values = [value for value in given.values() if value]
        return self._where(f"{' and '.join(conditions or ['1 = 1'])} order by nr", *values)

    def changes(self, *, after: int) -> DeliveryChanges:
        """What was stored by any process after the change with this number."""
        last = self._value("select coalesce(max(change), 0) from {s}deliveries")
        trails = self._rows("select trail from {s}deliveries where change > ?", after) if last > after else ()
        return DeliveryChanges(last, list(dict.fromkeys(told(trail) for (trail,) in trails)))

    def last(self, *, channel: str, trail: str, limit: int) -> Sequence[Delivery]:
        """The deliveries of one trail in one channel, newest first."""
        return self._where("trail = ? and channel = ? order by nr desc limit ?", trail, channel, limit)

    def untold(self, channel: str) -> Sequence[str]:
        """Ids of ended runs whose end a channel has not shown yet. Some of them may not concern the channel."""
        rows = self._rows(
            "select r.id from {s}runs r where r.state not in ('going', 'inside') and not exists ("
            "select 1 from {s}deliveries d where d.channel = ? and d.kind = 'result' and d.about = r.id "
            "and d.occasion = '' and d.run_state <> 'going') and ("
            "exists (select 1 from {s}origins o where o.channel = ? and o.run = r.id) "
            "or exists (select 1 from {s}deliveries d where d.trail = r.id and d.channel = ?)) order by r.nr",
            *(channel, channel, channel),
        )
        return [found for (found,) in rows]


def delivery_columns(delivery: Delivery) -> list[Any]:
    return [of(delivery) for _, of in _DELIVERY.values()]


def _delivery(row: Row) -> Delivery:
    channel, kind, about, occasion, trail, state, place, shown, live, may_stand, hopeless, *rest = row
    attempts, since, due, problem, run_state, worker, result = rest
    subject = Subject(SubjectKind(kind), told(about), Occasion(occasion) if occasion else None)
    told_of_run = None
    if run_state:
        line = subject.about.removeprefix(f"{subject.run}/") if subject.kind is SubjectKind.MESSAGE else ""
        told_of_run = RunResult(
            run=subject.run, state=RunState(run_state), worker=told(worker), text=told(result), line=line
        )
    return Delivery(
        channel=told(channel),
        subject=subject,
        trail=told(trail),
        state=DeliveryState(state),
        place=told(place),
        shown=shown,
        live=bool(live),
        may_stand=bool(may_stand),
        hopeless=bool(hopeless),
        attempts=attempts,
        since=moment(since),
        due=moment(due),
        problem=told(problem),
        result=told_of_run,
    )


delivery_of = RowReader("deliveries", {name: kind for name, (kind, _) in _DELIVERY.items()}, _delivery)
"""A delivery from a row of its columns."""


class Leases(Table):
    """Leases: which process runs which channel."""

    def get(self, channel: str) -> Lease | None:
        rows = self._rows(f"select {lease_of.names} from {{s}}leases where channel = ?", channel)
        return lease_of(rows[0]) if rows else None

    def all(self) -> Sequence[Lease]:
        """One for each channel that was ever run, in the order of their first run."""
        return [lease_of(row) for row in self._rows(f"select {lease_of.names} from {{s}}leases order by nr")]

    def put(self, lease: Lease) -> None:
        self._run(put("leases", _LEASE, "channel"), *lease_columns(lease))


_LEASE: Mapping[str, Any] = {
    "channel": str,
    "process": str,
    "since": datetime | None,
    "problem": str,
    "attempts": int,
    "due": datetime | None,
    "hopeless": bool,
}
"""The columns of a lease: the type of each."""


def lease_columns(lease: Lease) -> tuple[Any, ...]:
    down = lease.down
    if down is None:
        return lease.channel, lease.process, None, "", 0, None, False
    return lease.channel, lease.process, down.since, down.problem, down.attempts, down.due, down.hopeless


def _lease(row: Row) -> Lease:
    channel, process, since, problem, attempts, due, hopeless = row
    down = None
    if since is not None:
        down = Outage(
            since=EPOCH + timedelta(microseconds=since),
            problem=told(problem),
            attempts=attempts,
            due=moment(due),
            hopeless=bool(hopeless),
        )
    return Lease(channel=told(channel), process=told(process), down=down)


lease_of = RowReader("leases", _LEASE, _lease)
