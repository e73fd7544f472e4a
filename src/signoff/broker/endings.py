"""Runs that end while something of them stands in a channel: people are told there what they came to."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence

from signoff.broker.said import is_of_the_end, places, put_said, said_at_last
from signoff.core.delivery import NEVER
from signoff.core.run import KeptRun, RunState
from signoff.ports import Transaction


class Endings:
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
                for channel in self._silent(tx, run):
                    put_said(tx, channel, said_at_last(run))

    def _silent(self, tx: Transaction, run: KeptRun) -> list[str]:
        """The channels that a run concerns, and where nothing was said of its end."""
        rows = tx.deliveries.find(trail=run.id)
        shown = {one.channel for one in rows if one.shown != NEVER}
        said = {one.channel for one in rows if one.subject == f"said:{run.id}" and is_of_the_end(one)}
        concerned = [name for name in self._channels if name in shown or name in places(run)]
        # In a backup, what its main channel could not tell: that has been said there.
        return [name for name in concerned if name not in said]

    def _began_here(self, run: KeptRun) -> bool:
        return any(name in self._channels for name in places(run))

    def _stands_here(self, tx: Transaction, run: KeptRun) -> bool:
        return any(tx.deliveries.last(channel=name, trail=run.id, limit=1) for name in self._channels)
