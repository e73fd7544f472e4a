"""The loop that finds runs which can go on, for whoever goes on with them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

from signoff.broker import Broker
from signoff.broker.run_status import RunStatus
from signoff.broker.wall_clock import pause_for
from signoff.errors import SignoffError
from signoff.wiring.resumable_runs import ResumableRuns

AGAIN = 1.0
"""Seconds until another look, after one that failed."""
EVERY = timedelta(seconds=5)
"""How often runs are looked at that some process has in hand: one that dies tells nobody."""
ALL = 12
"""After how many of those looks all runs are looked at."""
HURRIED = 0.5
PATIENCE = 8.0
"""Seconds that runs which are to be put down have for that. A tool that takes no notice is left to itself."""


class ResumeLoop:
    """Looks for runs whenever anything may have changed, and hands over those that can go on."""

    def __init__(
        self,
        broker: Broker,
        looking: ResumableRuns,
        *,
        found: Callable[[Sequence[RunStatus]], Awaitable[None]],
        failed: Callable[[SignoffError | OSError], None],
        ended: Callable[[str, asyncio.Task[None]], None] = lambda run_id, task: None,
    ) -> None:
        """`found` gets what can go on, oldest first. `failed` hears why it cannot be looked, `ended` of tasks."""
        self._broker = broker
        self._looking = looking
        self._found = found
        self._failed = failed
        self._ended = ended
        self._changed = asyncio.Event()
        self.is_hurried = False
        """Whether what goes on has only a moment to be put down in the end."""
        self.tasks: dict[str, asyncio.Task[None]] = {}
        """Runs that go on here."""

    async def run(self) -> None:
        """Until cancelled: what went on then is put down, for any process to take up."""
        loop = asyncio.get_running_loop()

        def tick() -> None:
            with suppress(RuntimeError):  # the loop was closed in the same instant
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
        """Go on with a run, beside others."""
        run_id = status.run.id
        self._looking.takes_up(status)
        self.tasks[run_id] = task = asyncio.create_task(work, name=f"run {run_id}")
        task.add_done_callback(lambda done: self._done(run_id, done))

    def look_at(self, run_id: str) -> None:
        """Look soon, at this run whatever the events say."""
        self._looking.at(run_id)
        self._changed.set()

    def wait(self, run_id: str) -> None:
        """Leave a run alone for a while that could not go on, and look at it then."""
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
