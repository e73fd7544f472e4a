"""Results of runs and lines from their tools, stored until every channel concerned has shown them."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import replace

from signoff.core.address import spoken_name
from signoff.core.canonical import digest
from signoff.core.delivery import NEVER, Delivery, DeliveryState
from signoff.core.event import RunMessage
from signoff.core.notice import RunResult
from signoff.core.redact import redacted_beginning
from signoff.core.run import RunState, SavedRun
from signoff.core.subject import Subject, SubjectKind
from signoff.ports import Transaction

MOST_LINES = 50
"""Maximum lines from the tools of one run: a channel is not a log."""
LONGEST_LINE = 1_000
LONGEST = 100_000
"""Maximum characters of a run's result. A longer one is truncated and says so."""


def tell(
    tx: Transaction, run_id: str, worker: str, state: RunState, text: str, secrets: Sequence[str]
) -> Sequence[str]:
    """Store a run's result for every channel that showed something of it, or where it began. Returns the channels."""
    masked = redacted_beginning(text, longest=LONGEST, secrets=secrets)
    result = RunResult(run=run_id, state=state, worker=worker, text=masked)
    channels = concerned(tx, run_id)
    for channel in channels:
        put_result(tx, channel, result)
    return channels


def tell_message(tx: Transaction, run_id: str, message: RunMessage, secrets: Sequence[str]) -> None:
    """Store a tool's line for every channel that showed something of its run, or where the run began."""
    text = redacted_beginning(message.text, longest=LONGEST_LINE, secrets=secrets)
    worker, line = " > ".join(message.worker), digest([message.call, message.text])[:12]
    for channel in concerned(tx, run_id):
        told = sum(one.subject.kind is SubjectKind.MESSAGE for one in tx.deliveries.find(channel=channel, trail=run_id))
        if told > MOST_LINES:
            continue
        if told == MOST_LINES:
            line, text = "more", f"More than {MOST_LINES} lines; the rest is not shown here."
        put_result(tx, channel, RunResult(run=run_id, state=RunState.GOING, worker=worker, text=text, line=line))


def put_result(tx: Transaction, channel: str, result: RunResult) -> None:
    """Store a result for one channel, unless the same is stored already."""
    known = tx.deliveries.get(channel, result.key)
    if known is None:
        tx.deliveries.put(Delivery(channel=channel, subject=result.key, trail=result.trail, result=result))
    elif known.result != result:
        fresh = replace(known, result=result, state=DeliveryState.DUE, shown=NEVER, live=True)
        tx.deliveries.put(replace(fresh, attempts=0, since=None, due=None, problem=""))


def is_of_the_end(delivery: Delivery) -> bool:
    """Whether a delivery tells the final result of a run, not a line while it is going."""
    return delivery.result is not None and delivery.result.state is not RunState.GOING


def concerned(tx: Transaction, run_id: str) -> list[str]:
    """Return the channels that showed something of a run, and those where it began."""
    rows = tx.deliveries.find(trail=run_id)
    shown = [one.channel for one in rows if one.shown != NEVER and not one.subject.is_of_run]
    run = tx.runs.get(run_id)
    return list(dict.fromkeys([*shown, *(run.places if run is not None else ())]))


def _is_told_by_its_program(run: SavedRun, channel: str) -> bool:
    """Whether a program started the run in its own place and kept it to its end, so that it reports more itself."""
    return not run.agent and channel in run.places and run.epoch == 1


def _told(channel: str, result: RunResult) -> Delivery:
    """Return a delivery that marks a run's result as shown."""
    key = result.key
    return Delivery(
        channel=channel, subject=key, trail=result.trail, result=result, state=DeliveryState.SHOWN, shown=0, live=False
    )


class FinishedRuns:
    """Finds finished runs whose result must be shown. The process that ends a run may report more and goes first."""

    def __init__(self, channels: Collection[str]) -> None:
        self._channels = channels
        self._watched: set[str] = set()
        self._news = deque[str]()
        """Runs to watch from the next look on. A deque, because another thread may make the look."""
        self._is_new = True

    def start_over(self) -> None:
        """Find all runs again with the next look: another process may have run the channels."""
        self._is_new = True

    def watch(self, run_id: str) -> None:
        """Watch a run, because something of it is shown in a channel."""
        self._news.append(run_id)

    def look(self, tx: Transaction) -> Sequence[str]:
        """Return the ids of finished runs whose end may have to be shown."""
        while self._news:
            self._watched.add(self._news.popleft())
        going = tx.runs.all(going=True)
        self._watched |= {run.id for run in going if self._began_here(run)}
        if self._is_new:
            self._watched |= {run.id for run in going if self._stands_here(tx, run)}
            self._watched.update(one for name in self._channels for one in tx.deliveries.untold(name))
            self._is_new = False
        over: list[str] = []
        for run_id in self._watched - {run.id for run in going}:
            run = tx.runs.get(run_id)
            if run is None or (run.state is not RunState.GOING and not self._silent(tx, run)):
                self._watched.discard(run_id)
            elif run.state is not RunState.GOING:
                over.append(run_id)
        return over

    def tell(self, tx: Transaction, run_ids: Sequence[str]) -> None:
        """Store the results of these runs, except where one was stored already."""
        for run_id in run_ids:
            run = tx.runs.get(run_id)
            if run is not None and run.state is not RunState.GOING:
                # Nobody reported more, so use what is on record.
                worker = spoken_name(run.agent)
                result = RunResult(run=run.id, state=run.state, worker=worker, text=run.detail)
                for channel in self._silent(tx, run):
                    if _is_told_by_its_program(run, channel):
                        tx.deliveries.put(_told(channel, result))
                    else:
                        put_result(tx, channel, result)

    def _silent(self, tx: Transaction, run: SavedRun) -> list[str]:
        """Return the channels concerned that have no final result of a run yet."""
        rows = tx.deliveries.find(trail=run.id)
        shown = {one.channel for one in rows if one.shown != NEVER}
        subject = Subject(SubjectKind.RESULT, run.id)
        told = {one.channel for one in rows if one.subject == subject and is_of_the_end(one)}
        return [name for name in self._channels if (name in shown or name in run.places) and name not in told]

    def _began_here(self, run: SavedRun) -> bool:
        return any(name in self._channels for name in run.places)

    def _stands_here(self, tx: Transaction, run: SavedRun) -> bool:
        return any(tx.deliveries.last(channel=name, trail=run.id, limit=1) for name in self._channels)
