"""`ResumableRuns`: finds the runs that can be resumed now, of some channels or in this program's care."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta

from signoff.broker import Broker
from signoff.broker.run_status import RunStatus, run_status
from signoff.core.halt import halt_in
from signoff.core.run import RunState, SavedRun
from signoff.errors import SignoffError
from signoff.ports import Transaction

MOST_EVENTS = 500
"""With this many new events since the last look, reading all runs is quicker."""
SHORTEST, LONGEST = timedelta(seconds=1), timedelta(seconds=60)
"""Backoff: the shortest and longest delay before a run that could not be resumed is retried."""


SERVED = "signoff serve"
"""The entry in a run's places if `signoff serve` started or resumed it. No channel can have this name."""


class ResumableRuns:
    """Finds runs that can be resumed: first among all runs, then among those with new events."""

    def __init__(
        self,
        broker: Broker,
        channel_names: Collection[str],
        *,
        only: Callable[[SavedRun], bool] = lambda run: True,
        looks_after: Callable[[SavedRun], bool] = lambda run: False,
        takes_dead: bool = False,
    ) -> None:
        """`only` filters the runs to look for, if something else resumes others.

        `looks_after`: runs that are resumed here once they are answered, wherever people were asked. `takes_dead`: also
        those of them that wait for nobody and whose process died.
        """
        self._broker = broker
        self._only = only
        self._looks_after = looks_after
        self._takes_dead = takes_dead
        self._names = frozenset(channel_names)
        self._seen: int | None = None
        """The last event that was read; None: read all runs."""
        self._again: set[str] = set()
        """Runs to check whatever the events say."""
        self._acted: dict[str, frozenset[str]] = {}
        """The answers that a run was last resumed with, by run id."""
        self._failed: dict[str, tuple[timedelta, datetime]] = {}
        """Runs that could not be resumed: their retry delay, and since when."""
        self._held: set[str] = set()
        """Runs that some process executed at the last look."""
        self._resting: set[str] = set()
        """Runs that wait for an external result: only a new answer lets them be resumed."""
        self.told: set[str] = set()
        """Runs that people were told cannot be resumed here."""
        self.turns: set[str] = set()
        """Chat turns that were started in these channels and were unfinished at the last look."""
        self.ended: list[SavedRun] = []
        """Those of `turns` that the last look found finished."""

    def at_all(self) -> None:
        """Check all runs at the next look."""
        self._seen = None

    def at_held(self) -> None:
        """At the next look, also check runs that a process executed. It may have crashed, which writes no event."""
        self._again |= self._held

    def at(self, run_id: str) -> None:
        """Also check this run at the next look."""
        self._again.add(run_id)

    def takes_up(self, status: RunStatus) -> None:
        """Note that a run is resumed with the answers so far."""
        self._acted[status.run.id] = frozenset(one.id for one in status.answered)
        self._resting.discard(status.run.id)

    def went_on(self, run_id: str) -> None:
        """Note that a run could be resumed: reset its backoff."""
        self._failed.pop(run_id, None)

    def rests(self, run_id: str) -> None:
        """Note that a run waits for an external result. It is left alone until there is a new answer for it."""
        self.went_on(run_id)
        self._resting.add(run_id)

    def is_news(self, status: RunStatus) -> bool:
        """Return whether there is an answer that the run was not resumed with."""
        return not {one.id for one in status.answered} <= self._acted.get(status.run.id, frozenset())

    def forget(self, *run_ids: str) -> None:
        """Forget runs that are over."""
        for run_id in run_ids:
            self._acted.pop(run_id, None)
            self._failed.pop(run_id, None)
            for known in (self._resting, self._held, self.told, self.turns):
                known.discard(run_id)

    def did_not_act(self, status: RunStatus) -> bool:
        """Return whether an answer is still unused that the run was resumed with."""
        return not {one.id for one in status.answered}.isdisjoint(self._acted.get(status.run.id, frozenset()))

    def go_back(self, run_id: str) -> None:
        """Note that a run did not use the answers it was resumed with: they count as new again."""
        self._acted.pop(run_id, None)

    def wait(self, run_id: str) -> timedelta:
        """Delay the retry of a run that could not be resumed, with exponential backoff. Returns the delay."""
        wait = min(self._failed[run_id][0] * 2, LONGEST) if run_id in self._failed else SHORTEST
        self._failed[run_id] = (wait, self._broker.clock.now())
        self.go_back(run_id)
        return wait

    def has_place(self, run: SavedRun) -> bool:
        """Return whether it was started in one of these channels, or resumed for one."""
        return not self._names.isdisjoint(run.places)

    async def found(self, busy: Collection[str]) -> list[RunStatus]:
        """Return the runs that can be resumed, oldest first, without the `busy` ones. Empty during a halt."""
        again, self._again = self._again, set()
        now = self._broker.clock.now()

        def work(tx: Transaction) -> tuple[list[RunStatus], int, list[SavedRun], list[SavedRun]]:
            head = tx.record.head()[0]
            touched = self._touched(tx, again)
            free = [run for run in touched if run.state is RunState.GOING and run.id not in busy]
            over = [run for run in touched if run.state is not RunState.GOING and run.id not in busy]
            if halt_in(tx.settings.get):
                return [], head, over, free
            ours = [run for run in free if self._is_ours(tx, run)]
            can = [status for run in ours if self._can(status := run_status(tx, self._broker.ledger, run), now)]
            return can, head, over, free

        try:
            found, self._seen, over, going = await self._broker.store.read(work)
        except BaseException:
            self._again |= again
            raise
        self.ended = [run for run in over if run.id in self.turns]
        self.forget(*(run.id for run in over))
        self.turns |= {run.id for run in going if run.setup.chat and self.has_place(run)}
        self._held -= {run.id for run in going}
        self._held |= {run.id for run in going if run.holder}
        return sorted(found, key=lambda status: status.run.started_at or now)

    def _touched(self, tx: Transaction, again: Iterable[str]) -> Sequence[SavedRun]:
        """Return runs with new events, and finished ones that are still remembered."""
        if self._seen is None:
            return self._all(tx)
        entries = tx.record.entries(after=self._seen, limit=MOST_EVENTS)
        if len(entries) == MOST_EVENTS or any(entry.kind == "unhalted" for entry in entries):
            return self._all(tx)
        ids = dict.fromkeys([*again, *self._failed, *(entry.run for entry in entries if entry.run)])
        for request_id in dict.fromkeys(entry.request for entry in entries if entry.request and not entry.run):
            if (request := tx.requests.get(request_id)) is not None and request.run:
                ids[request.run] = None
        runs = (tx.runs.get(run_id) for run_id in ids)
        return [run for run in runs if run is not None and not run.parent]

    def _all(self, tx: Transaction) -> Sequence[SavedRun]:
        going = tx.runs.all(going=True)
        known = {*self._acted, *self._failed, *self._resting, *self._held, *self.told, *self.turns}
        gone = known - {run.id for run in going}
        return [*going, *(run for run_id in gone if (run := tx.runs.get(run_id)) is not None)]

    def _is_ours(self, tx: Transaction, run: SavedRun) -> bool:
        try:
            if not self._only(run):
                return False
            if self.has_place(run) or self._looks_after(run):
                return True
        except (SignoffError, OSError):  # its directory cannot be looked up: one run must not block all others
            return False
        return any(one.channel in self._names for one in tx.deliveries.find(trail=run.id))

    def _can(self, status: RunStatus, now: datetime) -> bool:
        """Return whether a run can be resumed: no process executes it, and there is an answer that it does not know.

        Also if it belongs to these channels and waits for nobody, or its process died and `takes_dead` is set.
        """
        run_id = status.run.id
        if status.word not in ("ready", "died"):
            return False
        if run_id in self._failed:
            wait, since = self._failed[run_id]
            if since <= now < since + wait:  # a clock that was set back is no reason to wait
                return False
        if self.is_news(status):
            return True
        if self._takes_dead and status.word == "died" and not status.waiting:
            return True
        # A run that somebody stopped elsewhere is left to them until there is an answer for it. So is a run that its
        # own program suspended, unless a server looks after it.
        is_left = not status.run.agent and status.word != "died" and SERVED not in status.run.places
        return not status.waiting and run_id not in self._resting and self.has_place(status.run) and not is_left
