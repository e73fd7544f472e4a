"""`signoff resume --watch`: resume runs one after the other as they are answered, if no server does it."""

from __future__ import annotations

import asyncio
import signal
import sys
import warnings
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING

import click

from signoff.cli.loops import run as run_loop
from signoff.cli.terminal_text import safe
from signoff.core.exit_codes import WAITING

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.broker.run_status import RunStatus
    from signoff.core.run import SavedRun
    from signoff.engine.resumable_runs import ResumableRuns
    from signoff.wiring import RunOptions

INTERRUPTED = 130


def watch_runs(options: RunOptions, resume: Callable[[RunStatus], int]) -> None:
    """Resume whatever can continue, until Ctrl-C or SIGTERM. `resume` returns the exit code of that run."""
    from signoff.engine.resumable_runs import ResumableRuns
    from signoff.wiring import open_broker

    broker, settings = open_broker(options.store, options.policy)

    def is_ours(run: SavedRun) -> bool:
        return bool(run.agent) or (bool(run.name) and run.name in settings.agents)

    looking = ResumableRuns(broker, (), only=is_ours, looks_after=is_ours, takes_dead=True)
    click.echo("Resuming runs as they are answered. Ctrl-C stops.", err=True)
    try:
        with _ended_by_sigterm():
            found = run_loop(_ready(broker, is_ours))
            while True:
                for status in found:
                    looking.takes_up(status)
                    _go_on(status, looking, resume)
                found = run_loop(_next(broker, looking))
    except KeyboardInterrupt:
        click.echo("Stopped. Answered runs stay ready to resume.", err=True)
    finally:
        broker.watch.close()
        broker.store.close()


def _go_on(status: RunStatus, looking: ResumableRuns, resume: Callable[[RunStatus], int]) -> None:
    """Resume one run. If it cannot continue, it is not retried for a while (backoff); Ctrl-C ends the watch."""
    run_id = status.run.id
    code = resume(status)
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    if code in (0, WAITING):
        looking.went_on(run_id)
    else:
        looking.wait(run_id)
    looking.at(run_id)


async def _ready(broker: Broker, is_ours: Callable[[SavedRun], bool]) -> list[RunStatus]:
    """Runs that can be resumed at the start, including those whose process died."""
    from signoff.wiring.resumers import WATCH, note_resumer

    await note_resumer(broker.ledger, WATCH)
    await broker.sweep()
    runs = await broker.runs.list(going=True)
    return [one for one in reversed(runs) if one.word in ("ready", "died") and is_ours(one.run)]


async def _next(broker: Broker, looking: ResumableRuns) -> list[RunStatus]:
    """Wait until runs can be resumed, and return them. Deadlines that pass meanwhile are applied."""
    from signoff.engine.resumer import EVERY
    from signoff.errors import StoreError

    loop, changed = asyncio.get_running_loop(), asyncio.Event()

    def tick() -> None:
        with suppress(RuntimeError):  # the loop was closed in the same instant
            loop.call_soon_threadsafe(changed.set)

    stop = broker.store.watch(tick)
    try:
        while True:
            changed.clear()
            try:
                await broker.sweep()
                if found := await looking.found(()):
                    return found
            except StoreError as error:
                warnings.warn(f"cannot read which runs are ready: {safe(str(error))}", RuntimeWarning, stacklevel=2)
                looking.at_all()
            try:
                await asyncio.wait_for(changed.wait(), EVERY.total_seconds())
            except TimeoutError:
                looking.at_all()  # a process that dies does not notify anybody
    finally:
        stop()


@contextmanager
def _ended_by_sigterm() -> Generator[None]:
    """Handle SIGTERM like Ctrl-C."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
        sys.stderr.flush()
