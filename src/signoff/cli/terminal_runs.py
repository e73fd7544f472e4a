"""`TerminalRuns`: runs that are resumed at this terminal, one at a time, each in the directory where it was started."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Iterable
from contextlib import ExitStack, chdir
from dataclasses import replace
from typing import TYPE_CHECKING

from signoff.cli.chat_command import talk
from signoff.cli.startup import uncollected
from signoff.core.exit_codes import WAITING
from signoff.engine.care import Executor, RunCare
from signoff.engine.segment_end import SegmentEnd
from signoff.wiring.job import Task, directory_of, job_of

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.cli.run_screen import Going
    from signoff.core.run import SavedRun
    from signoff.wiring.job import Job, RunOptions
    from signoff.workers.runtime import Finished


class TerminalRuns(RunCare):
    """Runs that are resumed at this terminal. What is shown of them goes through `going`."""

    def __init__(self, broker: Broker, options: RunOptions, going: Going, *, chats: bool = False) -> None:
        """`chats`: whether a run that was a turn of a chat is followed by the chat, if a person is at the terminal."""
        super().__init__(broker, at_once=1)
        self.options = replace(options, lent=broker.ledger.lend)
        self.going = going
        self.chats = chats
        self.code = 0
        """The exit code of the last run that was executed."""

    async def executor(self, run: SavedRun) -> Executor:
        async def built(run: SavedRun, options: RunOptions) -> Job:
            return job_of(run, options)

        return await self.at_terminal(run, built)

    async def at_terminal(self, run: SavedRun, built: Callable[[SavedRun, RunOptions], Awaitable[Job]]) -> Executor:
        """Go to the run's directory, because code of an agent may depend on it, and build its job there."""
        with uncollected():
            with ExitStack() as there:
                there.enter_context(chdir(directory_of(run) if run.agent else os.curdir))
                job = await built(run, self.options)
                there.callback(job.close)
                return _AtTerminal(self, job, there.pop_all())

    async def ended(self, run: SavedRun, end: SegmentEnd, *, again: bool) -> None:
        """Do nothing: whoever resumed the run has what it came to."""

    def trouble(self, error: Exception, run_id: str = "") -> None:
        """Do nothing: there is no loop."""


class _AtTerminal:
    """Executes a segment of a run, and shows what happens."""

    def __init__(self, runs: TerminalRuns, job: Job, there: ExitStack) -> None:
        self._runs = runs
        self._job = job
        self._there = there

    @property
    def secrets(self) -> Iterable[str]:
        return self._job.secrets

    async def resume(self, run: SavedRun) -> Finished:
        runs, job, going = self._runs, self._job, self._runs.going
        going.begun(job, run.setup.loosened)(run.id)
        going.progress.waits(await job.runner.gate.broker.runs.waiting(run.id))
        finished = await going.on(job.resume(run))
        runs.code = going.say(finished)
        if runs.code != WAITING and runs.chats and run.setup.chat and sys.stdin.isatty():
            task = Task(text="", input=run.setup.input)
            runs.code = WAITING if await talk(job, task, going, after=finished) is not None else 0
        return finished

    async def flush(self) -> None:
        await self._job.flush()

    def close(self) -> None:
        self._there.close()
