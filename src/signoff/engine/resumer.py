"""`ResumeLoop`: the background loop that finds runs to resume and keeps their tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

from signoff.broker import Broker
from signoff.broker.run_status import RunStatus
from signoff.broker.wall_clock import pause_for
from signoff.engine.resumable_runs import ResumableRuns
from signoff.errors import SignoffError

AGAIN = 1.0
"""Seconds before the next look after one that failed."""
EVERY = timedelta(seconds=5)
"""Polling interval for runs that some process executes: a process that crashes writes no event."""
ALL = 12
"""Every this many polls, all runs are checked."""
HURRIED = 0.5
PATIENCE = 8.0
"""Timeout in seconds for runs to suspend at shutdown. A tool that ignores cancellation is abandoned."""


class ResumeLoop:
    """Looks for runs whenever the store may have changed, and passes on those that can be resumed."""

    def __init__(
        self,
        broker: Broker,
        looking: ResumableRuns,
        *,
        found: Callable[[Sequence[RunStatus]], Awaitable[None]],
        failed: Callable[[SignoffError | OSError], None],
        ended: Callable[[str, asyncio.Task[None]], None] = lambda run_id, task: None,
    ) -> None:
        """`found` gets the runs to resume, oldest first. `failed` gets errors of a look, `ended` each finished task."""
        self._broker = broker
        self._looking = looking
        self._found = found
        self._failed = failed
        self._ended = ended
        self._changed = asyncio.Event()
        self.is_hurried = False
        """Whether runs in progress get only `HURRIED` seconds to suspend at shutdown."""
        self.tasks: dict[str, asyncio.Task[None]] = {}
        """Tasks of the runs that execute here, by run id."""

    async def run(self) -> None:
        """Look for runs until cancelled. Runs in progress are suspended then; any process can resume them."""
        loop = asyncio.get_running_loop()

        def tick() -> None:
            with suppress(RuntimeError):  # the event loop was closed at the same moment
                loop.call_soon_threadsafe(self._changed.set)

        stop = self._broker.store.watch(tick)
        ticking = asyncio.create_task(self._tick())
        try:
            while True:
                self._changed.clear()
                try:
                    await self.look()
                except (SignoffError, OSError) as error:
                    self._looking.at_all()
                    self._failed(error)
                    loop.call_later(AGAIN, self._changed.set)
                await self._changed.wait()
        finally:
            stop()
            tasks = [ticking, *self.tasks.values()]
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=HURRIED if self.is_hurried else PATIENCE)

    async def look(self) -> None:
        """Look once."""
        await self._found(await self._looking.found(self.tasks))

    def go_on(self, status: RunStatus, work: Coroutine[Any, Any, None]) -> None:
        """Resume a run in its own task."""
        run_id = status.run.id
        self._looking.takes_up(status)
        self.tasks[run_id] = task = asyncio.create_task(work, name=f"run {run_id}")
        task.add_done_callback(lambda done: self._done(run_id, done))

    def look_at(self, run_id: str) -> None:
        """Look soon, also at this run, whatever the events say."""
        self._looking.at(run_id)
        self._changed.set()

    def wait(self, run_id: str) -> None:
        """Retry a run that could not be resumed after a backoff delay."""
        wait = self._looking.wait(run_id)
        asyncio.get_running_loop().call_later(wait.total_seconds(), self.look_at, run_id)

    def _done(self, run_id: str, task: asyncio.Task[None]) -> None:
        self.tasks.pop(run_id, None)
        self.look_at(run_id)
        self._ended(run_id, task)

    async def _tick(self) -> None:
        looks = 0
        while True:
            await pause_for(self._broker.clock, EVERY)
            looks += 1
            (self._looking.at_held if looks % ALL else self._looking.at_all)()
            self._changed.set()
