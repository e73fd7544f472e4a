"""`signoff resume --watch`: resume runs one after the other as they are answered, if no server does it."""

from __future__ import annotations

from collections.abc import Collection
from traceback import print_exception
from typing import TYPE_CHECKING

import click

from signoff.cli.channels_run import run_and_close, stopping
from signoff.cli.terminal_runs import TerminalRuns
from signoff.cli.terminal_text import agent_name
from signoff.core.safe_text import safe_text
from signoff.engine.care import Executor
from signoff.engine.resumer import Resumer
from signoff.engine.run_text import cannot_now, rests_text
from signoff.engine.segment_end import Came, SegmentEnd
from signoff.errors import SignoffError, WrongUse
from signoff.wiring.job import directory_of
from signoff.wiring.job_builds import JobBuilds
from signoff.wiring.resumers import WATCH, note_resumer
from signoff.wiring.stores import open_broker

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.broker.run_status import RunStatus
    from signoff.cli.run_screen import Going
    from signoff.core.run import SavedRun
    from signoff.wiring.job import RunOptions


def watch_runs(options: RunOptions, going: Going, *, traceback: bool) -> None:
    """Resume whatever can continue, until Ctrl-C or SIGTERM."""
    broker, settings = open_broker(options.store, options.policy)
    runs = WatchedRuns(broker, options, going, settings.agents, traceback=traceback)
    click.echo("Resuming runs as they are answered. Ctrl-C stops.", err=True)
    with going.alone_on_stdout():
        run_and_close(runs.run(), broker)


class WatchedRuns(TerminalRuns):
    """All runs of a store whose agents are known, one at a time. What they come to is printed."""

    def __init__(
        self, broker: Broker, options: RunOptions, going: Going, agents: Collection[str], *, traceback: bool
    ) -> None:
        """`agents` are the names of programs' agents that the project's file knows."""
        super().__init__(broker, options, going)
        self._agents = agents
        self._traceback = traceback
        self._first: set[str] = set()
        """Runs that could be resumed at the start. They are, whether or not somebody answered."""
        self._told: dict[str, str] = {}
        """What was printed of runs that cannot be resumed here, by run id."""
        self._named: set[str] = set()
        """Runs that were named as they were taken up, and of which nothing new was printed since."""
        self._trouble = ""
        self._builds = JobBuilds(lambda run: None)

    async def run(self) -> None:
        """Resume runs until Ctrl-C or SIGTERM."""
        with stopping(self._stopped):
            await note_resumer(self.broker.ledger, WATCH)
            await self.broker.sweep()
            self._first = {one.run.id for one in await self.broker.runs.list(going=True) if one.word == "ready"}
            await Resumer(self).run()

    def looks_after(self, run: SavedRun) -> bool:
        return bool(run.agent) or (bool(run.name) and run.name in self._agents)

    def takes(self, status: RunStatus) -> bool:
        return status.died or status.run.id in self._first

    async def is_hindered(self, status: RunStatus) -> bool:
        run = status.run
        try:
            if run.agent:
                directory_of(run)
        except (WrongUse, OSError) as error:
            if self._told.get(run.id) != str(error):
                self._told[run.id] = str(error)
                self._say(run, str(error))
            return True
        return False

    async def executor(self, run: SavedRun) -> Executor:
        self._trouble = ""
        self._told.pop(run.id, None)
        self._first.discard(run.id)
        if not self.going.as_json and run.id not in self._named:
            self._named.add(run.id)
            click.echo(f"run {run.id}: {agent_name(run.agent)}", err=True)
        return await self.at_terminal(run, self._builds.built)

    async def ended(self, run: SavedRun, end: SegmentEnd, *, again: bool) -> None:
        if again:
            return
        # Until it is retried with another end, or another run comes to something, its name stands right above.
        self._named &= {run.id} if end.came in (Came.FAILED, Came.UNREACHABLE, Came.HALTED) else set()
        match end.came:
            case Came.ENDED if end.error is not None:
                self._say(run, f"the agent failed: {end.text}", end.error)
            case Came.FAILED:
                self._say(run, cannot_now(run.id, end.text), end.error)
            case Came.UNREACHABLE:
                self._say(run, f"It continues when the store works again: {end.text}")
            case Came.HALTED:
                self._say(run, str(end.error))
            case Came.RESTS if end.finished is None:
                self._say(run, rests_text(run.id))
            case _:
                pass

    def trouble(self, error: Exception, run_id: str = "") -> None:
        if str(error) != self._trouble:
            self._trouble = str(error)
            click.echo(f"signoff: cannot read which runs are ready: {safe_text(str(error))}", err=True)

    def _stopped(self) -> None:
        self.going.progress.ended()
        click.echo("Stopped. Answered runs stay ready to resume.", err=True)

    def _say(self, run: SavedRun, text: str, error: Exception | None = None) -> None:
        about = f"run {run.id}"
        line = text if text.startswith(about) else f"{about}: {text}"
        click.echo(f"signoff: {safe_text(line, lines=True)}", err=True)
        if error is not None and not isinstance(error, SignoffError):
            if self._traceback:
                print_exception(error)
            else:
                click.echo("  --traceback shows where.", err=True)
