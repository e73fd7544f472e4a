"""What runs came to, kept until every channel that is concerned has told it."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import replace

from signoff.core.address import spoken_name
from signoff.core.canonical import digest
from signoff.core.delivery import NEVER, Delivery, DeliveryState
from signoff.core.event import RunMessage
from signoff.core.notice import RunResult
from signoff.core.redact import redact_text
from signoff.core.run import RunState, SavedRun
from signoff.core.subject import Subject, SubjectKind
from signoff.ports import Transaction

MOST_LINES = 50
"""Of the tools of one run: a channel is no log."""
LONGEST_LINE = 1_000
LONGEST = 100_000
"""Of what a run came to. What is longer is cut, and says so."""


def tell(
    tx: Transaction, run_id: str, worker: str, state: RunState, text: str, secrets: Sequence[str]
) -> Sequence[str]:
    """Have it told in every channel where something of the run stands, or where it began; which those are."""
    masked = redact_text(text[:LONGEST], secrets=secrets)
    if len(text) > LONGEST:
        masked += f"… ({len(text):,} characters)"
    result = RunResult(run=run_id, state=state, worker=worker, text=masked)
    channels = concerned(tx, run_id)
    for channel in channels:
        put_result(tx, channel, result)
    return channels


def tell_message(tx: Transaction, run_id: str, message: RunMessage, secrets: Sequence[str]) -> None:
    """Have a tool's line told in every channel where something of its run stands, or where that began."""
    text = redact_text(message.text[:LONGEST_LINE], secrets=secrets)
    if len(message.text) > LONGEST_LINE:
        text += f"… ({len(message.text):,} characters)"
    worker, line = " > ".join(message.worker), digest([message.call, message.text])[:12]
    for channel in concerned(tx, run_id):
        told = sum(one.subject.kind is SubjectKind.MESSAGE for one in tx.deliveries.find(channel=channel, trail=run_id))
        if told > MOST_LINES:
            continue
        if told == MOST_LINES:
            line, text = "more", f"More than {MOST_LINES} lines; the rest is not shown here."
        put_result(tx, channel, RunResult(run=run_id, state=RunState.GOING, worker=worker, text=text, line=line))


def put_result(tx: Transaction, channel: str, result: RunResult) -> None:
    """Have it told in one channel, if it does not stand there yet."""
    known = tx.deliveries.get(channel, result.key)
    if known is None:
        tx.deliveries.put(Delivery(channel=channel, subject=result.key, trail=result.trail, result=result))
    elif known.result != result:
        fresh = replace(known, result=result, state=DeliveryState.DUE, shown=NEVER, live=True, instead="")
        tx.deliveries.put(replace(fresh, attempts=0, since=None, due=None, problem=""))


def is_of_the_end(delivery: Delivery) -> bool:
    """Whether what a delivery tells is what a run came to, and not only that it goes on."""
    return delivery.result is not None and delivery.result.state is not RunState.GOING


def concerned(tx: Transaction, run_id: str) -> list[str]:
    """The channels where something of a run stands, or where it began."""
    rows = tx.deliveries.find(trail=run_id)
    shown = [one.channel for one in rows if one.shown != NEVER and not one.subject.is_of_run]
    run = tx.runs.get(run_id)
    return list(dict.fromkeys([*shown, *(run.places if run is not None else ())]))


def _is_told_by_its_program(run: SavedRun, channel: str) -> bool:
    """Whether a program of its own began a run in a place of its own, and had it in hand to its end: it says more."""
    return not run.agent and channel in run.places and run.epoch == 1


def _told(channel: str, result: RunResult) -> Delivery:
    """That nothing is to be told there of a run."""
    key = result.key
    return Delivery(
        channel=channel, subject=key, trail=result.trail, result=result, state=DeliveryState.SHOWN, shown=0, live=False
    )


class FinishedRuns:
    """Knows the runs whose end concerns some channels. Whoever ends them may say more, and is left to it."""

    def __init__(self, channels: Collection[str]) -> None:
        self._channels = channels
        self._watched: set[str] = set()
        self._news = deque[str]()
        """Runs to be watched from the next look on, which may be made by another thread."""
        self._is_new = True

    def start_over(self) -> None:
        """Find all of them with the next look: somebody else may have run the channels."""
        self._is_new = True

    def watch(self, run_id: str) -> None:
        """Something of a run stands in a channel."""
        self._news.append(run_id)

    def look(self, tx: Transaction) -> Sequence[str]:
        """Ids of runs that are over, and of which that may have to be told."""
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
        """Have told what became of these, where nobody has said so yet."""
        for run_id in run_ids:
            run = tx.runs.get(run_id)
            if run is not None and run.state is not RunState.GOING:
                # Where nobody said more, what is on record of its end.
                worker = spoken_name(run.agent)
                result = RunResult(run=run.id, state=run.state, worker=worker, text=run.detail)
                for channel in self._silent(tx, run):
                    if _is_told_by_its_program(run, channel):
                        tx.deliveries.put(_told(channel, result))
                    else:
                        put_result(tx, channel, result)

    def _silent(self, tx: Transaction, run: SavedRun) -> list[str]:
        """The channels that a run concerns, and where nothing was said of its end."""
        rows = tx.deliveries.find(trail=run.id)
        shown = {one.channel for one in rows if one.shown != NEVER}
        subject = Subject(SubjectKind.RESULT, run.id)
        told = {one.channel for one in rows if one.subject == subject and is_of_the_end(one)}
        # In a backup, what its main channel could not tell: that has been said there.
        return [name for name in self._channels if (name in shown or name in run.places) and name not in told]

    def _began_here(self, run: SavedRun) -> bool:
        return any(name in self._channels for name in run.places)

    def _stands_here(self, tx: Transaction, run: SavedRun) -> bool:
        return any(tx.deliveries.last(channel=name, trail=run.id, limit=1) for name in self._channels)
