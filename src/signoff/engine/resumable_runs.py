"""`ResumableRuns`: finds the runs that can be resumed now in one way of resuming, and remembers what was tried."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from signoff.broker.run_status import RunStatus, run_status
from signoff.core.halt import halt_in
from signoff.core.run import RunState, SavedRun
from signoff.engine.care import SERVED, RunCare
from signoff.errors import SignoffError
from signoff.ports import Transaction

MOST_EVENTS = 500
"""With this many new events since the last look, reading all runs is quicker."""
SHORTEST, LONGEST = timedelta(seconds=1), timedelta(seconds=60)
"""Backoff: the shortest and longest delay before a run that could not be resumed is retried."""


@dataclass(slots=True)
class KnownRun:
    """What is remembered of a run that is going."""

    again: bool = False
    """Check it at the next look, whatever the events say."""
    held: bool = False
    """Some process executed it at the last look."""
    acted: frozenset[str] = frozenset()
    """The answers that it was last resumed with."""
    rests: bool = False
    """It waits for an external result: only a new answer lets it be resumed."""
    delay: timedelta | None = None
    """It could not be resumed: how long to wait before it is retried."""
    failed_at: datetime | None = None
    """When it could not be resumed."""
    said: object = None
    """What its last segment came to, if it came to nothing that moved it."""


class ResumableRuns:
    """Finds runs that can be resumed: first among all runs, then among those with new events."""

    def __init__(self, care: RunCare) -> None:
        self._care = care
        self._broker = care.broker
        self._seen: int | None = None
        """The last event that was read; None: read all runs."""
        self._known: dict[str, KnownRun] = {}

    def of(self, run_id: str) -> KnownRun:
        """Return what is remembered of a run."""
        return self._known.setdefault(run_id, KnownRun())

    def at_all(self) -> None:
        """Check all runs at the next look."""
        self._seen = None

    def at_held(self) -> None:
        """At the next look, also check runs that a process executed. It may have crashed, which writes no event."""
        for known in self._known.values():
            known.again = known.again or known.held

    def takes_up(self, status: RunStatus) -> None:
        """Note that a run is resumed with the answers so far."""
        known = self.of(status.run.id)
        known.acted, known.rests = _answers(status), False

    def went_on(self, run_id: str) -> None:
        """Note that a run could be resumed: reset its backoff."""
        known = self.of(run_id)
        known.delay, known.failed_at, known.said = None, None, None

    def rests(self, run_id: str) -> None:
        """Note that a run waits for an external result. It is left alone until there is a new answer for it."""
        self.went_on(run_id)
        self.of(run_id).rests = True

    def go_back(self, run_id: str) -> None:
        """Note that a run did not use the answers it was resumed with: they count as new again."""
        self.of(run_id).acted = frozenset()

    def wait(self, run_id: str) -> timedelta:
        """Delay the retry of a run that could not be resumed, with exponential backoff. Returns the delay."""
        known = self.of(run_id)
        known.delay = min(known.delay * 2, LONGEST) if known.delay is not None else SHORTEST
        known.failed_at = self._broker.clock.now()
        self.go_back(run_id)
        return known.delay

    def forget(self, run_id: str) -> None:
        """Forget a run that is over."""
        self._known.pop(run_id, None)

    async def found(self, busy: Collection[str]) -> list[RunStatus]:
        """Return the runs that can be resumed, without the `busy` ones. Empty during a halt."""
        again = [run_id for run_id, known in self._known.items() if known.again]
        failed = [run_id for run_id, known in self._known.items() if known.delay is not None]
        known, now = frozenset(self._known), self._broker.clock.now()

        def work(tx: Transaction) -> tuple[list[RunStatus], int, list[SavedRun]]:  # in a thread of the store
            head = tx.record.head()[0]
            touched = [run for run in self._touched(tx, [*again, *failed], known) if run.id not in busy]
            if halt_in(tx.settings.get):
                return [], head, touched
            ours = [run for run in touched if _goes(run) and self._is_ours(tx, run)]
            can = [status for run in ours if self._can(status := run_status(tx, self._broker.ledger, run), now)]
            return can, head, touched

        for run_id in again:  # before the look: whoever asks for one meanwhile asks for the next one
            self.of(run_id).again = False
        try:
            found, self._seen, touched = await self._broker.store.read(work)
        except BaseException:
            for run_id in again:
                self.of(run_id).again = True
            raise
        going = [run for run in touched if _goes(run)]
        over = [run for run in touched if not _goes(run)]
        for run in going:
            self.of(run.id).held = bool(run.holder)
        for run in over:
            self.forget(run.id)
        self._care.looked(going, over)
        return found

    def _touched(self, tx: Transaction, again: Iterable[str], known: Collection[str]) -> Sequence[SavedRun]:
        """Return runs with new events and those of `again`; or all, with the `known` ones that are over."""
        if self._seen is None:
            return _all(tx, known)
        entries = tx.record.entries(after=self._seen, limit=MOST_EVENTS)
        if len(entries) == MOST_EVENTS or any(entry.kind == "unhalted" for entry in entries):
            return _all(tx, known)
        ids = dict.fromkeys([*again, *(entry.run for entry in entries if entry.run)])
        for request_id in dict.fromkeys(entry.request for entry in entries if entry.request and not entry.run):
            if (request := tx.requests.get(request_id)) is not None and request.run:
                ids[request.run] = None
        runs = (tx.runs.get(run_id) for run_id in ids)
        return [run for run in runs if run is not None and not run.parent]

    def _is_ours(self, tx: Transaction, run: SavedRun) -> bool:
        care = self._care
        try:
            if not care.only(run):
                return False
            if care.began(run) or care.looks_after(run):
                return True
        except (SignoffError, OSError):  # its directory cannot be looked up: one run must not block all others
            return False
        return any(one.channel in care.names for one in tx.deliveries.find(trail=run.id))

    def _can(self, status: RunStatus, now: datetime) -> bool:
        """Return whether a run can be resumed: no process executes it, and there is an answer that it does not know.

        Also if it waits for nobody, and was begun in one of our places or is taken all the same.
        """
        if status.word not in ("ready", "died"):
            return False
        run, known = status.run, self._known.get(status.run.id) or KnownRun()
        if known.delay is not None and known.failed_at is not None:
            if known.failed_at <= now < known.failed_at + known.delay:  # a clock that was set back is no reason to wait
                return False
        if not _answers(status) <= known.acted:
            return True
        if not status.waiting and not known.rests and self._care.takes(status):
            return True
        # A run that somebody stopped elsewhere is left to them until there is an answer for it. So is a run that its
        # own program suspended, unless a server looks after it.
        is_left = not run.agent and status.word != "died" and SERVED not in run.places
        return not status.waiting and not known.rests and self._care.began(run) and not is_left


def _all(tx: Transaction, known: Collection[str]) -> Sequence[SavedRun]:
    going = tx.runs.all(going=True)
    gone = set(known) - {run.id for run in going}
    return [*going, *(run for run_id in gone if (run := tx.runs.get(run_id)) is not None)]


def _goes(run: SavedRun) -> bool:
    return run.state is RunState.GOING


def _answers(status: RunStatus) -> frozenset[str]:
    return frozenset(one.id for one in status.answered)
