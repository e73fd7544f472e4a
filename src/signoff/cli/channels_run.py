"""`signoff channels run`: people are asked until somebody stops it, with a line for whatever happens."""

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
from signoff.cli.terminal_text import as_json as json_line
from signoff.cli.terminal_text import count, iso, now, safe
from signoff.core.notice import Asked, Notice, Reminder
from signoff.core.request import State
from signoff.core.subject import Subject
from signoff.errors import ChannelFailed, SignoffError, WrongUse
from signoff.ports import Reminding

LEAVING = 0.05
"""Seconds after whoever sits here left until the program does."""
GRACE = 0.5
"""Seconds that tools which are running have to end when the program does."""
_OF_TOOLS = "AnyIO worker thread"
"""Threads that PydanticAI runs plain functions in."""

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.config import Settings
    from signoff.ports import Channel, Heard, Inbox
    from signoff.wiring import RunOptions


def run_until_stopped(
    names: Sequence[str], store: str | None, policy: str | None, *, resume: bool, as_json: bool
) -> None:
    """Open the channels, and stay."""
    from signoff.wiring import open_broker
    from signoff.wiring.channel_wiring import channel_named, check_workers, discord_people
    from signoff.wiring.project import settings_for

    settings = settings_for(policy)
    for name in names:  # before a store is made: what cannot work leaves nothing behind
        entry = channel_named(name, settings)
        check_workers(entry, settings)
        if entry.use == "discord":
            discord_people(entry, settings)
            entry.secret()
    broker, settings = open_broker(store, policy)
    here = frozenset(name for name in names if settings.channels[name].use == "terminal")
    report = ChannelReport(as_json=as_json, here=here)
    run_options = _run_options(store, policy) if resume else None
    before = frozenset(threading.enumerate())
    runner = asyncio.Runner()
    try:
        runner.run(_stay(list(dict.fromkeys(names)), broker, settings, run_options, report))
    finally:
        is_held = end_loop(runner)
        broker.watch.close()
        broker.store.close()
        leave_if_held_up(before, is_held=is_held)


def leave_if_held_up(before: Collection[threading.Thread], *, is_held: bool = False) -> None:
    """End the process where a tool still runs in a thread that was not there before: nobody waits for it any longer.

    Python would wait for it, for ever if it hangs. Everything is written by now; what it did counts as not known.
    Called while an error is on its way out, that is told first, and the process ends with its code. `is_held`: whether
    something is known to hold it up.
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
        with suppress(OSError, ValueError):  # whoever read it is gone
            stream.flush()
    os._exit(code)


def _told_code(error: BaseException | None) -> int:
    """The exit code for what is on its way out, which is told here."""
    from signoff.cli.main import FAILED, code_of, told

    match error:
        case None:
            return 0
        case SystemExit(code=int(code)):
            return code
        case SignoffError():
            with suppress(OSError, ValueError):
                click.echo(f"signoff: {told(error)}", err=True)
            return code_of(error)
        case _:
            traceback.print_exception(error)
            return FAILED


def end_loop(runner: asyncio.Runner) -> bool:
    """Close the loop of a runner; gives whether something is left in it that takes no notice of being cancelled."""
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
    """How runs go on: nobody sits here, and what is named here is meant from here."""
    from signoff.wiring import Caller, RunOptions, absolute_store

    policy = os.path.abspath(policy) if policy is not None else None
    return RunOptions(policy=policy, store=absolute_store(store, policy), unattended="park", caller=Caller.here())


async def _stay(
    names: list[str], broker: Broker, settings: Settings, run_options: RunOptions | None, report: ChannelReport
) -> None:
    """`run_options`: how to go on with what was answered; None: not here."""
    from signoff.delivery import Reconciler
    from signoff.wiring.channel_wiring import routes_for
    from signoff.wiring.program_inbox import project_inbox
    from signoff.wiring.project_people import OnFile

    broker.people.follow(OnFile(settings).roles)  # who is taken off the file while this runs is out
    start: list[Callable[[Heard], Awaitable[str]]] = []

    async def begin(heard: Heard) -> str:
        # What starts runs needs the reconciler, which needs the channels, which need this.
        return await start[0](heard)

    routes = routes_for(names, settings, begin=begin if run_options is not None else None)
    told = [replace(route, channel=told_of(route.channel, report)) for route in routes]
    reconciler = Reconciler(broker, told, inbox=lambda name: project_inbox(broker, settings, name))
    work: list[Coroutine[Any, Any, None]] = [reconciler.run()]
    if run_options is not None:
        from signoff.wiring.channel_runs import Running

        running = Running(reconciler, broker, settings, names, run_options, observe=report.run)
        start.append(running.begin)
        work.append(running.run())
    for name in names:
        backup = next((one.name for one in settings.channels.values() if one.backup_for == name), "")
        if backup and backup not in names:
            report.note(name, f"{backup} is the backup but is not running: signoff channels run {name} {backup}")
    with stopping(report.stopped) as stop, _warnings_told(report):
        if report.here.issuperset(names):
            report.left = stop
        await _together(work)


@contextmanager
def _warnings_told(report: ChannelReport) -> Generator[None]:
    """Within, what would be a warning of Python's is a line as all others, and discord.py tells nothing beside us."""
    library = logging.getLogger("discord")
    propagated, library.propagate = library.propagate, False
    quiet = logging.NullHandler()
    library.addHandler(quiet)
    with warnings.catch_warnings():
        warnings.simplefilter("always", RuntimeWarning)
        warnings.showwarning = lambda message, *_: report.warn(str(message))  # pyright: ignore[reportUnknownLambdaType]
        try:
            yield
        finally:
            library.propagate = propagated
            library.removeHandler(quiet)


@contextmanager
def stopping(stopped: Callable[[], None]) -> Generator[Callable[[], None]]:
    """Within, Ctrl-C and SIGTERM cancel this task, and `stopped` is called instead of an error. Gives what does so."""
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
    """All of it, until the first fails; the others have ended before its error is raised."""
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
    """Says what happens, each thing once: in lines for people, or as JSON."""

    as_json: bool = False
    here: frozenset[str] = frozenset()
    """Channels that ask on this very screen: they say themselves what they ask and what was answered."""
    tell: Callable[[str, str, str, dict[str, object]], None] | None = None
    """Who is told instead of standard output: the channel, the event, a line, and what is in it."""
    left: Callable[[], None] | None = None
    """What to do when whoever sits here leaves, where nobody else is asked."""
    _failing: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    _warned: set[str] = field(default_factory=set[str])
    _standing: dict[tuple[str, str], State] = field(default_factory=dict[tuple[str, str], State])

    def connected(self, channel: Channel, waiting: int) -> None:
        told = str(getattr(channel, "told", ""))
        self._say(channel.name, "connected", f"connected{f' as {safe(told)}' if told else ''}", told=told)
        self._say(channel.name, "waiting", f"{count(waiting, 'request waits', 'requests wait')}", waiting=waiting)

    def problem(self, channel: str, subject: str, failed: ChannelFailed) -> None:
        """Something could not be shown, or nothing can be."""
        if channel in self.here and not failed.again and self.left is not None:
            # A moment later: whoever asked has to hear first that it failed.
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
        """Something was shown."""
        if self._failing.pop((channel, ""), None) is not None:
            self._say(channel, "recovered", "works again")
        if subject and self._failing.pop((channel, subject), None) is not None:
            about = _about(subject)
            line = f"{safe(' '.join(about.values()))} is shown now"
            self._say(channel, "recovered", line, **{"request": None, **about})

    def shown(self, channel: str, notice: Notice) -> None:
        """A notice stands in a channel as it is now."""
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

    def note(self, channel: str, text: str) -> None:
        self._say(channel, "note", text, text=text)

    def warn(self, text: str) -> None:
        """Something is wrong that concerns no channel; said once, however often it is found."""
        if text not in self._warned:
            self._warned.add(text)
            self.note("", safe(text))

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
    """What a notice is about, as people know it: a request, or a run."""
    if not subject:
        return {}
    of = Subject.parse(subject)
    return {"run": of.run} if of.is_of_run else {"request": of.about}


class WatchedChannel:
    """A channel about which is told what happens to it."""

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
        """Say what went wrong, be it with the channel itself. What cannot be used at all is said by whoever runs it."""
        from signoff.delivery.attempt import failure_of

        if not isinstance(error, WrongUse):
            self._report.problem(self.name, subject, failure_of(error))

    async def stop(self) -> None:
        await self._channel.stop()


class ToldReminding(WatchedChannel):
    """The same, of a channel that can remind people."""

    def __init__(self, channel: Channel, reminding: Reminding, report: ChannelReport) -> None:
        super().__init__(channel, report)
        self._reminding = reminding

    async def remind(self, reminder: Reminder, card: str, at: str = "") -> str:
        return await self._telling(reminder.subject, self._reminding.remind(reminder, card, at))


def told_of(channel: Channel, report: ChannelReport) -> WatchedChannel:
    """A channel, with what happens to it told."""
    return (
        ToldReminding(channel, channel, report) if isinstance(channel, Reminding) else WatchedChannel(channel, report)
    )
