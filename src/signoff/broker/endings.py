"""Runs that end while something of them stands in a channel: people are told there what they came to."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from signoff.broker.said import places, put_said, said_at_last
from signoff.core.delivery import NEVER
from signoff.core.run import KeptRun, RunState
from signoff.ports import Transaction


class Endings:
    """Knows the runs whose end concerns some channels. Whoever ends them may say more, and is left to it."""

    def __init__(self, channels: Collection[str]) -> None:
        self._channels = channels
        self._watched: set[str] | None = None

    def start_over(self) -> None:
        """Read everything with the next look."""
        self._watched = None

    def watch(self, run_id: str) -> None:
        """Something of a run stands in a channel."""
        if self._watched is not None:
            self._watched.add(run_id)

    def look(self, tx: Transaction) -> Sequence[str]:
        """Ids of runs that are over, and of which that may have to be told."""
        if self._watched is None:
            shown = {one.trail for name in self._channels for one in tx.deliveries(channel=name) if one.shown != NEVER}
            self._watched = {run.id for run in tx.runs() if run.id in shown or self._began_here(run)}
        else:
            self._watched |= {run.id for run in tx.runs(going=True) if self._began_here(run)}
        over: list[str] = []
        for run_id in list(self._watched):
            run = tx.run(run_id)
            if run is None or (run.state is not RunState.GOING and not self._silent(tx, run)):
                self._watched.discard(run_id)
            elif run.state is not RunState.GOING:
                over.append(run_id)
        return over

    def tell(self, tx: Transaction, run_ids: Sequence[str]) -> None:
        """Have told what became of these, where nobody has said so yet."""
        for run_id in run_ids:
            run = tx.run(run_id)
            if run is not None and run.state is not RunState.GOING:
                for channel in self._silent(tx, run):
                    put_said(tx, channel, said_at_last(run))

    def _silent(self, tx: Transaction, run: KeptRun) -> list[str]:
        """The channels that a run concerns, and where nothing was said of its end."""
        shown = {one.channel for one in tx.deliveries(trail=run.id) if one.shown != NEVER}
        said = {one.channel for one in tx.deliveries(trail=run.id) if one.subject == f"said:{run.id}"}
        concerned = [name for name in self._channels if name in shown or name in places(run)]
        # In a backup, what its main channel could not tell: that has been said there.
        return [name for name in concerned if name not in said]

    def _began_here(self, run: KeptRun) -> bool:
        return any(name in self._channels for name in places(run))
