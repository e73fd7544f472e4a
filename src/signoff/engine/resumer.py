"""`Resumer`: finds the runs that have news, and has them executed, as long as it runs."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Protocol

from signoff.broker.run_status import RunStatus
from signoff.broker.wall_clock import pause_for
from signoff.engine.care import RunCare
from signoff.engine.resumable_runs import ResumableRuns
from signoff.engine.segment import segment
from signoff.engine.segment_end import Came, SegmentEnd
from signoff.errors import SignoffError
from signoff.store_changes import told_of_changes

AGAIN = 1.0
"""Seconds before the next look after one that failed."""
EVERY = timedelta(seconds=5)
"""Polling interval for runs that some process executes: a process that crashes writes no event."""
ALL = 12
"""Every this many polls, all runs are checked."""
HURRIED = 0.5
PATIENCE = 8.0
"""Timeout in seconds for runs to suspend at shutdown. A tool that ignores cancellation is abandoned."""


class Engine(Protocol):
    """Where segments of runs are executed: in this process, or wherever another system has its workers.

    The store stays the truth: the engine gets nothing but runs that have news. It may get the same one again.
    """

    async def go_on(self, status: RunStatus) -> SegmentEnd:
        """Have a segment of the run executed, and return what it came to.

        `Came.LEFT` if another process executes it: the run is offered again after a while, unless it has moved by then.
        That process calls `segment`. Only one executes a run at a time, whoever gets it: its epoch is the fence.
        """
        ...


class Embedded:
    """Executes segments in this process. The default."""

    def __init__(self, care: RunCare) -> None:
        self._care = care

    async def go_on(self, status: RunStatus) -> SegmentEnd:
        return await segment(self._care, status)


class Resumer:
    """Looks for runs whenever the store may have changed, and has an engine execute those that can be resumed."""

    def __init__(self, care: RunCare, engine: Engine | None = None) -> None:
        """`care` says which runs, in which order, and hears what they came to. `engine`: None is this process."""
        self._care = care
        self._broker = care.broker
        self._engine = engine or Embedded(care)
        self._runs = ResumableRuns(care)
        self._changed = asyncio.Event()
        self._is_due = True
        """Whether deadlines that have passed are applied before the next look."""
        self._drains = False
        """Whether nothing new is resumed."""
        self._is_hurried = False
        """Whether runs in progress get only `HURRIED` seconds to suspend at shutdown."""
        self.tasks: dict[str, asyncio.Task[None]] = {}
        """Tasks of the runs in progress, by run id."""
        self.line: set[str] = set()
        """Runs that can be resumed but wait for a free place."""

    # --- looking ---

    async def run(self, *, watch: bool = True) -> None:
        """Resume runs until cancelled; with `watch=False`, until none is in progress and none can be resumed.

        A look that failed is repeated; with `watch=False` its error is raised once nothing is in progress. Runs in
        progress are suspended at the end; any process can resume them.
        """
        loop = asyncio.get_running_loop()
        ticking = asyncio.create_task(self._tick())
        try:
            with told_of_changes(self._broker.store.watch, self._changed.set):
                while True:
                    self._changed.clear()
                    try:
                        if self._is_due:
                            self._is_due = False
                            await self._broker.sweep()
                        await self.look()
                        if not watch and not self.tasks and not self.line:
                            return
                    except (SignoffError, OSError) as error:
                        if not watch and not self.tasks:
                            raise
                        self._runs.at_all()
                        self._care.trouble(error)
                        loop.call_later(AGAIN, self._changed.set)
                    await self._changed.wait()
        finally:
            tasks = [ticking, *self.tasks.values()]
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=HURRIED if self._is_hurried else PATIENCE)

    async def look(self) -> None:
        """Start to resume every run that is ready, as far as there are free places."""
        found = await self._runs.found(self.tasks)
        self.line.clear()
        for status in self._care.order(found, self.tasks):
            if self._drains or len(self.tasks) >= self._care.at_once:
                self.line.add(status.run.id)
                self._runs.of(status.run.id).again = True
            elif await self._care.is_hindered(status):
                self._runs.of(status.run.id).again = True
            else:
                self._go_on(status)

    def look_at(self, run_id: str) -> None:
        """Check soon whether this run can be resumed, even if it failed before."""
        self._runs.went_on(run_id)
        self._look_at(run_id)

    def _look_at(self, run_id: str) -> None:
        self._runs.of(run_id).again = True
        self._changed.set()

    async def _tick(self) -> None:
        looks = 0
        while True:
            await pause_for(self._broker.clock, EVERY)
            looks += 1
            self._is_due = True
            (self._runs.at_held if looks % ALL else self._runs.at_all)()
            self._changed.set()

    # --- resuming ---

    def _go_on(self, status: RunStatus) -> None:
        """Resume a run in its own task."""
        run_id = status.run.id
        self._runs.takes_up(status)
        self.tasks[run_id] = task = asyncio.create_task(self._segment(status), name=f"run {run_id}")
        task.add_done_callback(lambda done: self._done(run_id, done))

    async def _segment(self, status: RunStatus) -> None:
        run, runs = status.run, self._runs
        end = await self._engine.go_on(status)
        again = runs.of(run.id).said == (said := (end.came, end.text))
        match end.came:
            case Came.ENDED | Came.OVER | Came.WAITS | Came.ANSWERED:
                runs.went_on(run.id)
            case Came.RESTS:
                runs.rests(run.id)
            case Came.HALTED:
                runs.go_back(run.id)
                if not await self._broker.switch.state():  # an agent with a gate of its own may notice the halt late
                    self._wait(run.id)
            case Came.LEFT | Came.UNREACHABLE | Came.FAILED:
                self._wait(run.id)
        runs.of(run.id).said = said
        await self._care.ended(run, end, again=again)
        if end.came is Came.ENDED:
            runs.forget(run.id)

    def _wait(self, run_id: str) -> None:
        """Retry a run that could not be resumed after a backoff delay."""
        wait = self._runs.wait(run_id)
        asyncio.get_running_loop().call_later(wait.total_seconds(), self._look_at, run_id)

    def _done(self, run_id: str, task: asyncio.Task[None]) -> None:
        self.tasks.pop(run_id, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._wait(run_id)
            self._care.trouble(error if isinstance(error, Exception) else RuntimeError(repr(error)), run_id)
        self._look_at(run_id)

    # --- stopping ---

    def drain(self) -> None:
        """Resume nothing new from now on. Runs in progress continue."""
        self._drains = True

    def hurry(self) -> None:
        """Give runs in progress only a moment to suspend when `run` is cancelled."""
        self._is_hurried = True

    async def idle(self) -> None:
        """Return once no run is in progress."""
        while self.tasks:
            await asyncio.wait(self.tasks.values())

    def offered(self, run_id: str) -> int:
        """Have a new run looked at soon. Returns how many are in progress or in line before it."""
        before = len({*self.tasks, *self.line} - {run_id})
        self.line.add(run_id)
        self._look_at(run_id)
        return before
