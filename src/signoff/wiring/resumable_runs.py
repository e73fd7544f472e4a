"""Which runs can go on now, of those that were begun or asked about on some channels, or that are looked after."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta

from signoff.broker import Broker
from signoff.broker.run_status import RunStatus, run_status
from signoff.broker.watch import HALTED
from signoff.core.run import RunState, SavedRun
from signoff.errors import SignoffError
from signoff.ports import Transaction
from signoff.wiring.run_location import setup_now

MOST_EVENTS = 500
"""Events since the last look beyond which it is quicker to look at all runs."""
SHORTEST, LONGEST = timedelta(seconds=1), timedelta(seconds=60)
"""How long to wait until a run is tried again that could not go on."""


SERVED = "signoff serve"
"""Among a run's places, where `signoff serve` began it or went on with it. No channel can be called so."""


class ResumableRuns:
    """Looks for runs that can go on: at all of them first, then at those about which something is new."""

    def __init__(
        self,
        broker: Broker,
        channel_names: Collection[str],
        *,
        only: Callable[[SavedRun], bool] = lambda run: True,
        looks_after: Callable[[SavedRun], bool] = lambda run: False,
        takes_dead: bool = False,
    ) -> None:
        """`only`: which runs to look for; something else may look after others.

        `looks_after`: runs that go on here once they are answered, wherever people were asked. `takes_dead`: those of
        them too that nobody has to answer, and whose process is gone.
        """
        self._broker = broker
        self._only = only
        self._looks_after = looks_after
        self._takes_dead = takes_dead
        self._names = frozenset(channel_names)
        self._seen: int | None = None
        """The last event that was looked at; None: all runs are to be looked at."""
        self._again: set[str] = set()
        """Runs to look at whatever the events say."""
        self._acted: dict[str, frozenset[str]] = {}
        """Answers that a run went on with last."""
        self._failed: dict[str, tuple[timedelta, datetime]] = {}
        """Runs that could not go on: how long they wait for another try, and since when."""
        self._held: set[str] = set()
        """Runs that some process had in hand when they were looked at last."""
        self._resting: set[str] = set()
        """Runs that wait for something that is done elsewhere: only a new answer lets them go on."""
        self.told: set[str] = set()
        """Runs of which it was said that they cannot go on here."""
        self.turns: set[str] = set()
        """Turns of chats that began in our channels, and were going when they were looked at last."""
        self.ended: list[SavedRun] = []
        """Of those, what the last look found to be over."""

    def at_all(self) -> None:
        """Look at all runs the next time."""
        self._seen = None

    def at_held(self) -> None:
        """Look at those too, the next time, that a process had in hand: it may have died, which nothing tells."""
        self._again |= self._held

    def at(self, run_id: str) -> None:
        """Look at this one too, the next time."""
        self._again.add(run_id)

    def takes_up(self, status: RunStatus) -> None:
        """A run goes on with what was answered so far."""
        self._acted[status.run.id] = frozenset(one.id for one in status.answered)
        self._resting.discard(status.run.id)

    def went_on(self, run_id: str) -> None:
        """A run could go on."""
        self._failed.pop(run_id, None)

    def rests(self, run_id: str) -> None:
        """A run waits for an external result: it is left alone until there is a new answer for it."""
        self.went_on(run_id)
        self._resting.add(run_id)

    def is_news(self, status: RunStatus) -> bool:
        """Whether something was answered that a run did not go on with."""
        return not {one.id for one in status.answered} <= self._acted.get(status.run.id, frozenset())

    def forget(self, *run_ids: str) -> None:
        """These runs are over."""
        for run_id in run_ids:
            self._acted.pop(run_id, None)
            self._failed.pop(run_id, None)
            for known in (self._resting, self._held, self.told, self.turns):
                known.discard(run_id)

    def did_not_act(self, status: RunStatus) -> bool:
        """Whether an answer is still there that the run was to go on with."""
        return not {one.id for one in status.answered}.isdisjoint(self._acted.get(status.run.id, frozenset()))

    def go_back(self, run_id: str) -> None:
        """A run did not go on with what it was taken up for: that is news again."""
        self._acted.pop(run_id, None)

    def wait(self, run_id: str) -> timedelta:
        """Leave a run alone for a while that could not go on, longer each time; gives how long."""
        wait = min(self._failed[run_id][0] * 2, LONGEST) if run_id in self._failed else SHORTEST
        self._failed[run_id] = (wait, self._broker.clock.now())
        self.go_back(run_id)
        return wait

    def has_place(self, run: SavedRun) -> bool:
        """Whether it was begun in one of our channels, or gone on with for one."""
        return not self._names.isdisjoint(run.places)

    async def found(self, busy: Collection[str]) -> list[RunStatus]:
        """Runs of ours that can go on, oldest first, without those that are being gone on with."""
        again, self._again = self._again, set()
        now = self._broker.clock.now()

        def work(tx: Transaction) -> tuple[list[RunStatus], int, list[SavedRun], list[SavedRun]]:
            head = tx.record.head()[0]
            touched = self._touched(tx, again)
            free = [run for run in touched if run.state is RunState.GOING and run.id not in busy]
            over = [run for run in touched if run.state is not RunState.GOING and run.id not in busy]
            if tx.settings.get(HALTED):
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
        """Runs about which something is new, or that are over and still remembered."""
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
        except (SignoffError, OSError):  # where it began cannot be looked at: one run must not stop all others
            return False
        return any(one.channel in self._names for one in tx.deliveries.find(trail=run.id))

    def _can(self, status: RunStatus, now: datetime) -> bool:
        """Whether a run can go on: nobody has it in hand, and there is an answer that it does not know."""
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
        # One that somebody stopped elsewhere is left to them, until there is an answer for it; so is one that the
        # program which began it put down itself, unless a server has it in its care.
        is_left = not status.run.agent and status.word != "died" and SERVED not in status.run.places
        return not status.waiting and run_id not in self._resting and self.has_place(status.run) and not is_left


def cannot(run: SavedRun) -> str:
    """Why a run that nobody has in hand cannot go on in this process, for people; empty where it can."""
    if not run.agent:
        gone = ", but the program that asked is gone" if run.holder else ""
        return f'Answered{gone}. It continues when a program resumes run {run.id}: `resume(agent, "{run.id}")`'
    if not _is_here(setup_now(run.setup).directory):
        return elsewhere(run)
    return ""


def elsewhere(run: SavedRun) -> str:
    """What people are told of a worker's run of which this process knows nothing."""
    return f"Answered. To resume: signoff resume {run.id}"


def _is_here(directory: str) -> bool:
    try:
        return os.path.samefile(directory, os.getcwd())
    except OSError:
        return False
