"""`signoff channels run`: run channels until stopped, and print a line for each event."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Awaitable, Callable, Collection, Coroutine, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import click

from signoff.channels.outcome import step_text
from signoff.cli.main import told
from signoff.cli.terminal_text import as_json as json_line
from signoff.cli.terminal_text import count, iso, now, safe
from signoff.core.exit_codes import FAILED
from signoff.core.notice import Asked, Notice, Reminder
from signoff.core.request import State
from signoff.core.subject import Subject
from signoff.delivery import Reconciler
from signoff.delivery.attempt import failure_of
from signoff.errors import ChannelFailed, SignoffError, WrongUse
from signoff.ports import Channel, Heard, Inbox, Reminding
from signoff.wiring.caller import Caller
from signoff.wiring.channel_runs import Running
from signoff.wiring.channel_wiring import channel_named, check_ready, check_workers, routes_for
from signoff.wiring.job import RunOptions
from signoff.wiring.program_inbox import project_inbox
from signoff.wiring.project import settings_for
from signoff.wiring.project_people import OnFile
from signoff.wiring.resumers import CHANNELS, note_resumer
from signoff.wiring.stores import absolute_store, open_broker

LEAVING = 0.05
"""Seconds between the user leaving the terminal and the end of the program."""
GRACE = 0.5
"""Seconds that running tools have to end when the program ends (grace period)."""
_OF_TOOLS = "AnyIO worker thread"
"""Threads in which PydanticAI runs plain functions."""

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.channel_kinds import ChannelKind
    from signoff.config import Settings
    from signoff.wiring.job import RunOptions


def run_until_stopped(
    names: Sequence[str], store: str | None, policy: str | None, *, resume: bool, as_json: bool
) -> None:
    """Open the channels and run until stopped."""
    settings = settings_for(policy)
    kinds: dict[str, ChannelKind] = {}
    for name in names:  # before a store is made, so that a wrong call leaves nothing behind
        entry = channel_named(name, settings)
        check_workers(entry, settings)
        kinds[name], _ = check_ready(entry, settings)
    broker, settings = open_broker(store, policy)
    here = frozenset(name for name, kind in kinds.items() if kind.at_terminal)
    silenced = tuple(logger for kind in kinds.values() for logger in kind.loggers)
    report = ChannelReport(as_json=as_json, here=here, silenced=silenced)
    run_options = _run_options(store, policy) if resume else None
    run_and_close(_stay(list(dict.fromkeys(names)), broker, settings, run_options, report), broker)


def run_and_close(work: Coroutine[Any, Any, None], broker: Broker) -> None:
    """Run work that stays, and close the broker at its end, whatever still hangs."""
    before = frozenset(threading.enumerate())
    runner = asyncio.Runner()
    try:
        runner.run(work)
    finally:
        is_held = end_loop(runner)
        broker.watch.close()
        broker.store.close()
        leave_if_held_up(before, is_held=is_held)


def leave_if_held_up(before: Collection[threading.Thread], *, is_held: bool = False) -> None:
    """End the process if a tool still runs in a thread started since `before`; nobody waits for it any more.

    Python would wait for the thread, forever if it hangs. Everything is saved by now; the outcome of that call is
    unknown. If an exception is being raised, it is printed first, and the process ends with its exit code. `is_held`
    says that something else is known to block the exit.
    """
    until = time.monotonic() + GRACE
    for thread in threading.enumerate():
        if thread.name.startswith(_OF_TOOLS) and thread not in before and not thread.daemon:
            thread.join(max(0.0, until - time.monotonic()))
            is_held = is_held or thread.is_alive()
    if not is_held:
        return
    code = _told_code(sys.exception())
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # the reader of the stream is gone
            stream.flush()
    os._exit(code)


def _told_code(error: BaseException | None) -> int:
    """Print the exception that is being raised, and return its exit code."""
    match error:
        case None:
            return 0
        case SystemExit(code=int(code)):
            return code
        case SignoffError():
            with suppress(OSError, ValueError):
                click.echo(f"signoff: {told(error)}", err=True)
            return error.exit_code
        case _:
            traceback.print_exception(error)
            return FAILED


def end_loop(runner: asyncio.Runner) -> bool:
    """Cancel all tasks and close the event loop of a runner. Returns whether a task ignores its cancellation."""
    loop = runner.get_loop()

    async def end() -> bool:
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        return bool(left) and bool((await asyncio.wait(left, timeout=GRACE))[1])

    is_held = loop.run_until_complete(end())
    if not is_held:
        runner.close()
    return is_held


def _run_options(store: str | None, policy: str | None) -> RunOptions:
    """Options for resumed runs: unattended, with paths relative to the current directory."""
    policy = os.path.abspath(policy) if policy is not None else None
    return RunOptions(policy=policy, store=absolute_store(store, policy), unattended="park", caller=Caller.here())


async def _stay(
    names: list[str], broker: Broker, settings: Settings, run_options: RunOptions | None, report: ChannelReport
) -> None:
    """Run channels, and with `run_options` also continue answered runs."""
    broker.people.follow(OnFile(settings).roles)  # people removed from the file while this runs lose their roles
    start: list[Callable[[Heard], Awaitable[str]]] = []

    async def begin(heard: Heard) -> str:
        # `Running` needs the reconciler, which needs the channels, which need this function.
        return await start[0](heard)

    routes = routes_for(names, settings, begin=begin if run_options is not None else None)
    told = [replace(route, channel=told_of(route.channel, report)) for route in routes]
    reconciler = Reconciler(broker, told, inbox=lambda name: project_inbox(broker, settings, name))
    work: list[Coroutine[Any, Any, None]] = [reconciler.run()]
    if run_options is not None:
        running = Running(reconciler, broker, settings, names, run_options, observe=report.run)
        start.append(running.begin)
        work.append(running.run())
        await note_resumer(broker.ledger, CHANNELS)
    with stopping(report.stopped) as stop, _warnings_told(report):
        if report.here.issuperset(names):
            report.left = stop
        await _together(work)


@contextmanager
def _warnings_told(report: ChannelReport) -> Generator[None]:
    """Print Python warnings as ordinary lines, and silence the logs of channels' libraries."""
    libraries = [logging.getLogger(name) for name in report.silenced]
    propagated = [library.propagate for library in libraries]
    quiet = logging.NullHandler()
    for library in libraries:
        library.propagate = False
        library.addHandler(quiet)
    with warnings.catch_warnings():
        warnings.simplefilter("always", RuntimeWarning)
        warnings.showwarning = lambda message, *_: report.warn(str(message))  # pyright: ignore[reportUnknownLambdaType]
        try:
            yield
        finally:
            for library, before in zip(libraries, propagated, strict=True):
                library.propagate = before
                library.removeHandler(quiet)


@contextmanager
def stopping(stopped: Callable[[], None]) -> Generator[Callable[[], None]]:
    """Let SIGINT and SIGTERM cancel this task; then call `stopped` instead of raising. Yields a stop function."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None, "it is called in one"
    asked = False

    def stop() -> None:
        nonlocal asked
        asked = True
        task.cancel()

    for one in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):
            loop.add_signal_handler(one, stop)
    try:
        yield stop
    except asyncio.CancelledError:
        if not asked:
            raise
        stopped()
    finally:
        for one in (signal.SIGINT, signal.SIGTERM):
            with suppress(NotImplementedError):
                loop.remove_signal_handler(one)


async def _together(work: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Run all until the first fails. The others have ended when its error is raised."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


@dataclass(slots=True)
class ChannelReport:
    """Prints what happens, each event once: in lines for people, or as JSON."""

    as_json: bool = False
    here: frozenset[str] = frozenset()
    """Channels that ask on this terminal. They print their questions and answers themselves."""
    silenced: tuple[str, ...] = ()
    """Loggers whose lines are not printed: what matters of them is an event."""
    tell: Callable[[str, str, str, dict[str, object]], None] | None = None
    """Called instead of printing: with the channel, the event, a line, and the data."""
    left: Callable[[], None] | None = None
    """Called when the user leaves the terminal and nobody else is asked."""
    _failing: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    _warned: set[str] = field(default_factory=set[str])
    _standing: dict[tuple[str, str], State] = field(default_factory=dict[tuple[str, str], State])

    def connected(self, channel: Channel, waiting: int) -> None:
        told = str(getattr(channel, "told", ""))
        self._say(channel.name, "connected", f"connected{f' as {safe(told)}' if told else ''}", told=told)
        self._say(channel.name, "waiting", f"{count(waiting, 'request waits', 'requests wait')}", waiting=waiting)

    def problem(self, channel: str, subject: str, failed: ChannelFailed) -> None:
        """Report that a notice could not be shown, or that the whole channel fails."""
        if channel in self.here and not failed.again and self.left is not None:
            # A moment later: the caller must first see the failure.
            asyncio.get_running_loop().call_later(LEAVING, self.left)
            return
        key, text = (channel, "" if failed.whole else subject), safe(str(failed))
        if key not in self._failing:
            again = "retrying until it works" if failed.again else "retrying, but somebody has to fix it first"
            about = _about(key[1])
            line = f"{safe(' '.join(about.values()))}  {text}; {again}" if key[1] else f"{text}; {again}"
            self._say(channel, "problem", line, **{"request": None, **about}, problem=text)
        self._failing[key] = text

    def fine(self, channel: str, subject: str = "") -> None:
        """Report that something was shown."""
        if self._failing.pop((channel, ""), None) is not None:
            self._say(channel, "recovered", "works again")
        if subject and self._failing.pop((channel, subject), None) is not None:
            about = _about(subject)
            line = f"{safe(' '.join(about.values()))} is shown now"
            self._say(channel, "recovered", line, **{"request": None, **about})

    def shown(self, channel: str, notice: Notice) -> None:
        """Report that the current state of a notice is shown in a channel."""
        if not isinstance(notice, Asked) or (channel in self.here and not self.as_json):
            return
        request = notice.request
        if self._standing.get((channel, request.id)) is not request.state:
            self._standing[channel, request.id] = request.state
            what = step_text(request)
            by = request.decision.by.name if request.decision is not None and request.decision.by is not None else None
            told = {"request": request.id, "title": safe(request.title), "state": str(request.state), "by": by}
            self._say(channel, "shown", f"{safe(request.id)}  {what}  {safe(request.title)}", **told)
        if not notice.is_live:
            self._standing.pop((channel, request.id), None)

    def run(self, line: str) -> None:
        self._say("", "run", safe(line), text=safe(line))

    def warn(self, text: str) -> None:
        """Report a problem that concerns no channel; once, however often it is found."""
        if text not in self._warned:
            self._warned.add(text)
            self._say("", "note", safe(text), text=safe(text))

    def stopped(self) -> None:
        self._say("", "stopped", "Stopped. Pending requests stay in the channel and in signoff inbox.")

    def _say(self, channel: str, event: str, line: str, **data: object) -> None:
        if self.tell is not None:
            self.tell(channel, event, line, data)
        elif self.as_json:
            click.echo(json_line({"at": iso(now()), "event": event, "channel": channel or None, **data}))
        else:
            click.echo(f"{channel}: {line}" if channel else line)


def _about(subject: str) -> dict[str, str]:
    """What a notice is about: a request or a run."""
    if not subject:
        return {}
    of = Subject.parse(subject)
    return {"run": of.run} if of.is_of_run else {"request": of.about}


class WatchedChannel:
    """A channel that reports what happens to it."""

    def __init__(self, channel: Channel, report: ChannelReport) -> None:
        self._channel = channel
        self._report = report

    @property
    def name(self) -> str:
        return self._channel.name

    async def start(self, inbox: Inbox) -> None:
        try:
            await self._channel.start(inbox)
        except Exception as error:
            self._problem("", error)
            raise
        self._report.fine(self.name)
        self._report.connected(self._channel, len(await inbox.pending()))

    async def show(self, notice: Notice, at: str = "", beside: str = "") -> str:
        place = await self._telling(notice.subject, self._channel.show(notice, at, beside))
        self._report.shown(self.name, notice)
        return place

    async def _telling(self, subject: str, work: Coroutine[Any, Any, str]) -> str:
        try:
            place = await work
        except Exception as error:
            self._problem(subject, error)
            raise
        self._report.fine(self.name, subject)
        return place

    def _problem(self, subject: str, error: Exception) -> None:
        """Report an error, also one of the channel's code. `WrongUse` is left to the caller, who reports it."""
        if not isinstance(error, WrongUse):
            self._report.problem(self.name, subject, failure_of(error))

    async def stop(self) -> None:
        await self._channel.stop()


class ToldReminding(WatchedChannel):
    """A `WatchedChannel` that can remind people."""

    def __init__(self, channel: Channel, reminding: Reminding, report: ChannelReport) -> None:
        super().__init__(channel, report)
        self._reminding = reminding

    async def remind(self, reminder: Reminder, card: str, at: str = "") -> str:
        return await self._telling(reminder.subject, self._reminding.remind(reminder, card, at))


def told_of(channel: Channel, report: ChannelReport) -> WatchedChannel:
    """Wrap a channel so that it reports what happens to it."""
    return (
        ToldReminding(channel, channel, report) if isinstance(channel, Reminding) else WatchedChannel(channel, report)
    )
