"""`signoff channels test`: send a harmless request to a channel and report step by step."""

from __future__ import annotations

import asyncio
import sys
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import click

from signoff.broker import Broker
from signoff.channel_kinds import ChannelKind, check_modules
from signoff.cli.channels_run import stopping
from signoff.cli.open_broker import store_meant
from signoff.cli.terminal_text import as_json as json_line
from signoff.cli.terminal_text import safe
from signoff.core.delivery import NEVER
from signoff.core.exit_codes import FAILED, WAITING
from signoff.core.moment import span
from signoff.core.notice import Asked
from signoff.core.request import ApprovalRequest, State
from signoff.core.request_status import settled_text
from signoff.core.subject import Subject, SubjectKind
from signoff.delivery import Reconciler, Route
from signoff.delivery.attempt import failure_of
from signoff.delivery.channel_inbox import harmless_request
from signoff.delivery.delivery_status import running_channels
from signoff.errors import SignoffError, WrongFile, WrongUse
from signoff.store.memory_store import MemoryStore
from signoff.store_changes import changes
from signoff.wiring.channel_wiring import (
    channel_for,
    channel_named,
    check_people,
    context_for,
    given_config,
    kind_of,
    shape_of_kind,
)
from signoff.wiring.program_inbox import project_inbox
from signoff.wiring.project import roles_of, settings_for
from signoff.wiring.stores import open_broker

if TYPE_CHECKING:
    from signoff.config import ChannelEntry, Settings
    from signoff.ports import Channel

SHOWING = 60.0
"""Timeout in seconds for a channel to show something."""
LEAVING = 5.0
"""Seconds to withdraw a question that was left without an answer."""


@dataclass(frozen=True, slots=True)
class TestSteps:
    """Prints the progress of the test."""

    channel: str
    as_json: bool

    def done(self, step: str, **data: object) -> None:
        if self.as_json:
            click.echo(json_line({"step": step, "ok": True, **data}))
        else:
            click.echo(f"{click.style('ok', fg='green')}      {step}")

    def failed(self, step: str, problem: str) -> None:
        if self.as_json:
            click.echo(json_line({"step": step, "ok": False, "problem": problem}))
        else:
            what = f"{step}: {problem}" if step else problem
            click.echo(f"{click.style('failed', fg='red')}  {what}")

    def result(self, code: int, text: str, **data: object) -> int:
        if self.as_json:
            click.echo(json_line({"channel": self.channel, "ok": code == 0, "exit": code, "result": text, **data}))
        else:
            click.echo(text)
        return code


class _Failed(Exception):
    """A step failed, and the failure was printed."""


def try_out(name: str, wait: timedelta, policy: str | None, *, answer: bool, as_json: bool) -> None:
    """Test a channel, and exit with the result."""
    settings = settings_for(policy)
    entry = channel_named(name, settings)
    steps = TestSteps(entry.name, as_json)
    try:
        sys.exit(asyncio.run(_until_stopped(entry, settings, wait, steps, answer=answer)))
    except _Failed:
        sys.exit(steps.result(FAILED, f"{entry.name} does not work yet."))


async def _until_stopped(
    entry: ChannelEntry, settings: Settings, wait: timedelta, steps: TestSteps, *, answer: bool
) -> int:
    with stopping(lambda: None):
        return await _tried(entry, settings, wait, steps, answer=answer)
    return steps.result(FAILED, "Stopped.")


async def _tried(entry: ChannelEntry, settings: Settings, wait: timedelta, steps: TestSteps, *, answer: bool) -> int:
    kind = kind_of(entry, settings)
    if answer and kind.answers:
        await _refuse_two(entry, settings)
    await _reached(entry, settings, kind, steps)
    opened = _trial(entry, settings, listens=answer) if kind.answers else _trial_by_link(entry, settings, steps)
    who = "the user at this terminal" if kind.at_terminal else "anyone in `people`" if kind.answers else "anyone"
    async with opened as trial:
        asked = await trial.asked(wait if answer else None)
        try:
            await trial.stands(asked, steps, "a harmless request is shown")
            settled = await _answered(trial, asked, who, wait, steps) if answer else asked
        finally:  # stopping the test must not leave a question that accepts no answer
            if asked.id in {one.id for one in await trial.broker.pending()}:
                settled = await trial.broker.cancel(asked.id, "the test is over")
                await trial.stands(settled, within=LEAVING)
        await trial.stands(settled, steps, "the request was updated")
    by = settled.decision.by if settled.decision is not None else None
    if answer and by is None:
        return steps.result(WAITING, f"Nobody answered in time: {safe(settled_text(settled, datetime.astimezone))}.")
    return steps.result(0, f"{entry.name} works. Nothing ran.", by=by.name if by is not None else None)


async def _answered(
    trial: Trial, asked: ApprovalRequest, who: str, wait: timedelta, steps: TestSteps
) -> ApprovalRequest:
    if not steps.as_json:
        click.echo(f"        waiting {span(wait.total_seconds())} for {who} to approve or deny it …")
    settled = await trial.settled(asked, steps)
    by = settled.decision.by if settled.decision is not None else None
    if by is not None:
        steps.done(f"{'approved' if settled.state is State.APPROVED else 'denied'} by {safe(by.name)}", by=by.name)
    return settled


async def _refuse_two(entry: ChannelEntry, settings: Settings) -> None:
    """Raise if the channel is already running: the other program would get the answer too, to an unknown request."""
    try:
        store = store_meant(None, settings, make=False)
    except SignoffError:  # a store that cannot be opened does not say who runs the channel
        return
    try:
        lease = (await running_channels(Broker(store).ledger)).get(entry.name)
        process = await store.read(lambda tx: tx.processes.get(lease.process)) if lease is not None else None
    finally:
        store.close()
    if process is not None:
        raise WrongUse(
            f"{entry.name} is already run by process {process.pid}, which would also receive the answer\n"
            f"  stop that process first, or test without an answer: signoff channels test {entry.name} --no-answer"
        )


async def _reached(entry: ChannelEntry, settings: Settings, kind: ChannelKind, steps: TestSteps) -> None:
    """Check that the secrets are set, somebody could answer, and whatever else the kind checks."""
    from signoff.config.config_check import made_by

    secrets = ", ".join(filter(None, (entry.variable(kind, key) for key in kind.secrets)))
    step = f"the secret is set: {secrets}" if secrets else "its keys are right"
    try:
        given = given_config(entry, settings)
        if given.values:
            steps.done(step)
        step = "somebody could answer"
        people = check_people(entry, settings)
        if people and kind.account is not None and kind.answers:
            steps.done(f"{step}: {', '.join(safe(one.name) for one in people.values())}")
    except (WrongFile, WrongUse) as error:
        steps.failed(step.partition(":")[0], str(error))
        raise _Failed from error
    check_modules(entry.use, kind)
    if kind.check is None:
        return
    bad = False
    context = context_for(entry, settings)
    async for step, problem, is_needed in made_by(kind.check, given, context, shape=shape_of_kind(kind.check, kind)):
        if problem:
            bad = bad or is_needed
            steps.failed(step, problem)
        else:
            steps.done(step)
    if bad:
        raise _Failed


class Trial(ABC):
    """An open channel, and a harmless request that is asked about there."""

    def __init__(self, entry: ChannelEntry, broker: Broker) -> None:
        self.entry = entry
        self.broker = broker

    async def asked(self, wait: timedelta | None) -> ApprovalRequest:
        """Open a request that no run waits for."""
        [opened] = await self.broker.open([harmless_request("signoff channels test tests this channel", wait=wait)])
        return opened

    async def stands(
        self, request: ApprovalRequest, steps: TestSteps | None = None, step: str = "", *, within: float = SHOWING
    ) -> None:
        """Wait until the channel shows the request's current state. Without `steps`, do not fail if it does not."""
        problem = await self.problem(request, within)
        if steps is None:
            return
        if problem:
            steps.failed(step, safe(problem))
            raise _Failed
        steps.done(step)

    @abstractmethod
    async def problem(self, request: ApprovalRequest, within: float) -> str:
        """Wait until the channel shows the request's current state; return why it does not, or an empty text."""

    @abstractmethod
    async def settled(self, request: ApprovalRequest, steps: TestSteps) -> ApprovalRequest:
        """Wait until somebody answers, time is up, or the request can no longer be answered."""


class TrialByLink(Trial):
    """A channel that only links, over the project's store: its link has to lead to a request that is there.

    Only this request is shown. Whatever else waits is left to the process that runs the channel.
    """

    def __init__(self, entry: ChannelEntry, broker: Broker, channel: Channel) -> None:
        super().__init__(entry, broker)
        self._channel = channel
        self._at = ""

    async def problem(self, request: ApprovalRequest, within: float) -> str:
        try:
            async with asyncio.timeout(within):
                self._at = await self._channel.show(Asked(request=request), self._at)
        except TimeoutError:
            return f"not within {within:.0f} seconds"
        except Exception as error:
            return str(failure_of(error))
        return ""

    async def settled(self, request: ApprovalRequest, steps: TestSteps) -> ApprovalRequest:
        return await self.broker.wait(request.id)


class TrialByAnswer(Trial):
    """A channel where people answer, over a store that lasts as long as this program."""

    def __init__(self, entry: ChannelEntry, broker: Broker, posting: asyncio.Task[None]) -> None:
        super().__init__(entry, broker)
        self.posting = posting

    async def problem(self, request: ApprovalRequest, within: float) -> str:
        try:
            async with asyncio.timeout(within):
                found = await self._until(request, lambda found: found.is_shown or found.is_hopeless)
        except TimeoutError:
            found = await self._found(request)
        return "" if found.is_shown else found.problem or f"not within {within:.0f} seconds"

    async def settled(self, request: ApprovalRequest, steps: TestSteps) -> ApprovalRequest:
        answer = asyncio.create_task(self.broker.wait(request.id))
        gone = asyncio.create_task(self._until(request, lambda found: not found.is_shown and bool(found.problem)))
        try:
            await asyncio.wait((answer, gone), return_when=asyncio.FIRST_COMPLETED)
            if answer.done():
                return answer.result()
            steps.failed("somebody answers", safe(gone.result().problem))
            raise _Failed
        finally:
            answer.cancel()
            gone.cancel()
            await asyncio.gather(answer, gone, return_exceptions=True)

    async def _until(self, request: ApprovalRequest, fits: Callable[[ShownRequest], bool]) -> ShownRequest:
        with changes(self.broker.store.watch) as changed:
            self.posting.add_done_callback(lambda _: changed.set())
            while not fits(found := await self._found(request)):
                await changed.wait()
                changed.clear()
            return found

    async def _found(self, request: ApprovalRequest) -> ShownRequest:
        if self.posting.done():
            error = None if self.posting.cancelled() else self.posting.exception()
            return ShownRequest(problem=str(error or "it was stopped"), is_hopeless=True)
        name, subject = self.entry.name, Subject(SubjectKind.REQUEST, request.id)
        one = await self.broker.store.read(lambda tx: tx.deliveries.get(name, subject))
        lease = (await running_channels(self.broker.ledger)).get(name)
        down = lease.down if lease is not None else None
        return ShownRequest(
            is_shown=one is not None and one.shown != NEVER and one.shown >= request.version,
            problem=down.problem if down is not None else one.problem if one is not None else "",
            is_hopeless=(down is not None and down.hopeless) or (one is not None and one.hopeless),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRequest:
    """The state of a request in the channel."""

    is_shown: bool = False
    problem: str = ""
    is_hopeless: bool = False
    """Whether the channel has given up retrying."""


@asynccontextmanager
async def _trial(entry: ChannelEntry, settings: Settings, *, listens: bool) -> AsyncGenerator[Trial]:
    """Run the channel over a memory store. `listens`: take answers, which every program with the same secret gets."""
    broker = Broker(MemoryStore(), people=roles_of(settings))
    channel = channel_for(entry, settings, listens=listens)
    reconciler = Reconciler(broker, [Route(channel)], inbox=lambda name: project_inbox(broker, settings, name))
    posting = asyncio.create_task(reconciler.run())
    try:
        yield TrialByAnswer(entry, broker, posting)
    finally:
        posting.cancel()
        await asyncio.gather(posting, return_exceptions=True)
        broker.watch.close()
        broker.store.close()


@asynccontextmanager
async def _trial_by_link(entry: ChannelEntry, settings: Settings, steps: TestSteps) -> AsyncGenerator[Trial]:
    """Open the channel over the project's store, which the web inbox shows too."""
    if not settings.server.url:
        steps.failed("its links lead to the web inbox", "the file does not say where: add `server: {url: https://…}`")
        raise _Failed
    channel = channel_for(entry, settings)
    broker, _ = open_broker(None, settings.file or None)
    try:
        try:
            async with asyncio.timeout(SHOWING):
                await channel.start(project_inbox(broker, settings, entry.name))
        except Exception as error:
            steps.failed("the channel is open", safe(str(failure_of(error)) or "no answer"))
            raise _Failed from error
        yield TrialByLink(entry, broker, channel)
    finally:
        await channel.stop()
        broker.watch.close()
        broker.store.close()
