"""`Resumption`: resumes answered runs of your own program that no process executes, or tells people about them."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Awaitable, Callable, Collection, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from signoff.broker import Broker
from signoff.broker.run_status import RunStatus
from signoff.core.run import RunState, SavedRun
from signoff.delivery import Reconciler
from signoff.engine.care import Executor, RunCare
from signoff.engine.resumer import Resumer
from signoff.engine.run_text import answer_text, rests_text
from signoff.engine.segment_end import Came, SegmentEnd
from signoff.wiring.run_location import cannot, elsewhere

if TYPE_CHECKING:
    from signoff.workers.runtime import Finished

Resume = Callable[[str], Awaitable[object]]
"""Resumes the run with this id, as `resume` does. If it returns the run's result, that is shown in full."""

GRACE = timedelta(seconds=10)
"""How long a program may take to resume a run by itself before people are told that none does."""


class Resumption(RunCare):
    """Looks after the runs that were asked about in one channel."""

    def __init__(
        self,
        broker: Broker,
        reconciler: Reconciler,
        channel: str,
        resume: Resume | None,
        *,
        log: logging.Logger,
        only: Callable[[SavedRun], bool] = lambda run: True,
    ) -> None:
        """`only` filters the runs, if something else resumes others."""
        super().__init__(broker, [channel])
        self._channel = channel
        self._log = log
        self._reconciler = reconciler
        self._resume = resume
        self._only = only
        self._since: dict[str, datetime] = {}
        """Since when runs could be resumed that this program does not resume."""
        self._told: set[str] = set()
        """Those of them that people were told about."""
        self._called: dict[str, str] = {}
        """What people call the agents of the runs that execute here."""

    async def run(self) -> None:
        """Look for runs until cancelled. Runs in progress are suspended then."""
        try:
            await Resumer(self).run()
        finally:
            self._reconciler.in_hand -= self._called.keys()

    def only(self, run: SavedRun) -> bool:
        return self._only(run)

    def looked(self, going: Sequence[SavedRun], over: Sequence[SavedRun]) -> None:
        for run in over:
            self._told.discard(run.id)

    def order(self, found: Sequence[RunStatus], busy: Collection[str]) -> Sequence[RunStatus]:
        now = self.broker.clock.now()
        self._since = {one.run.id: self._since.get(one.run.id, now) for one in found}
        return super().order(found, busy)

    async def is_hindered(self, status: RunStatus) -> bool:
        """Give the program a while to resume the run itself, if it does not have it done here. Then tell people."""
        run = status.run
        if self._resume is not None and not run.agent:
            self._called[run.id] = _name(status)
            return False
        is_ready = bool(status.answered) and not status.waiting and run.id not in self._told
        if is_ready and self.broker.clock.now() - self._since[run.id] >= GRACE:
            await self._reconciler.say(run.id, _name(status), RunState.GOING, cannot(run) or elsewhere(run))
            self._told.add(run.id)
        return True

    async def executor(self, run: SavedRun) -> Executor:
        assert self._resume is not None, "else it is hindered"
        self._reconciler.in_hand.add(run.id)  # so that its result is shown in full, and not only its beginning
        return _ByProgram(self._resume, self.broker)

    async def ended(self, run: SavedRun, end: SegmentEnd, *, again: bool) -> None:
        name = self._called.get(run.id, "")
        try:
            if end.came is Came.ENDED and end.finished is not None:
                await self._reconciler.say(run.id, name, RunState.DONE, answer_text(end.finished.output))
            elif end.came is Came.RESTS and not again:
                await self._reconciler.say(run.id, name, RunState.GOING, rests_text(run.id))
            elif end.has_failed and not again:
                what = "could not continue; retrying" if end.came is not Came.ENDED else "failed"
                self._log.error("%s: run %s %s", self._channel, run.id, what, exc_info=end.error)
        finally:
            self._called.pop(run.id, None)
            self._reconciler.in_hand.discard(run.id)

    def trouble(self, error: Exception, run_id: str = "") -> None:
        what = f"run {run_id}" if run_id else "cannot read which runs are ready"
        warnings.warn(f"{what}: {error}", RuntimeWarning, stacklevel=2)


class _ByProgram:
    """Executes a segment by a function of the program."""

    secrets = ()

    def __init__(self, resume: Resume, broker: Broker) -> None:
        self._resume = resume
        self._broker = broker

    async def resume(self, run: SavedRun) -> Finished | None:
        from signoff.workers.runtime import finished_of

        return finished_of(await self._resume(run.id))

    async def flush(self) -> None:
        await self._broker.store.flush()

    def close(self) -> None:
        """Do nothing: the program goes on."""


def _name(status: RunStatus) -> str:
    """Return the name that people use for the agent that asked."""
    worker = next((one.worker for one in status.answered if one.worker), "")
    return worker.partition(" > ")[0] or status.run.agent
