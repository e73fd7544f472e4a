"""`ProgramChannel`: asks for approvals through a connection that your own program has to a service, such as a bot."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from functools import partial
from re import fullmatch
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from signoff.broker import Broker
from signoff.channel_kinds import ChannelKind
from signoff.channels.headless import ELSEWHERE
from signoff.config import ChannelEntry, Settings
from signoff.core.people import Actor, person_key
from signoff.core.safe_text import error_line, safe_text
from signoff.delivery import Reconciler, Route
from signoff.delivery.overdue import end_overdue
from signoff.errors import WrongUse
from signoff.policy.engine import Policy
from signoff.policy.phrases import listed, shown
from signoff.ports import Approver, Begin, Channel, Heard, Inbox, Store
from signoff.wiring.caller import Caller
from signoff.wiring.channel_runs import Running
from signoff.wiring.channel_wiring import check_workers
from signoff.wiring.job import RunOptions
from signoff.wiring.program_inbox import gate_inbox, project_inbox
from signoff.wiring.program_runs import Resume, Resumption
from signoff.wiring.project import roles_of, settings_for
from signoff.wiring.project_people import Accounts, OnFile
from signoff.wiring.stores import store_for

if TYPE_CHECKING:
    from signoff.gate.capability import Signoff
    from signoff.gate.handover import DeferredToolRequests, DeferredToolResults, Handover, ToolDefinition


class ProgramChannel(ABC):
    """What such a channel does that is the same for every service: a kind derives from it and adds its own names.

    It runs in the program's event loop, from `start` to `stop`; `async with` does both. There is no global state: a
    process may have several.
    """

    approver: ClassVar[Approver] = ELSEWHERE
    """Approver for capabilities that are not passed as `signoff`: their runs wait for answers from anywhere."""
    kind: ClassVar[ChannelKind]
    use: ClassVar[str]
    """The name of the kind in the registry."""

    def __init__(
        self,
        *,
        signoff: Signoff | None,
        place: str | None,
        people: Mapping[str, str | int] | None,
        store: Store | str | None,
        timeout: timedelta | Literal["default"] | None,
        resume: Resume | None,
        name: str | None,
    ) -> None:
        """`place`: where people are asked, by the first key of the kind's `place`. `name`: the channel of the file."""
        own = type(self).__name__
        if signoff is not None and store is not None:
            raise WrongUse(f"the Signoff capability has its own store: give {own} signoff or store, not both")
        # If all of these are given, no project file is needed, and an invalid one does not matter.
        is_told = signoff is not None and place is not None and people is not None and name is None
        self._settings = settings_for(None) if not is_told else Settings(policy=Policy(rules=()), people={})
        self.entry = entry = None if place is not None and name is None else self._entry(name, needed=place is None)
        self.name = entry.name if entry is not None else name or self.use
        self.place = place if place is not None else entry.place(self.kind) if entry is not None else ""
        self._log = logging.getLogger(f"signoff.{self.use}")
        self._on_file = OnFile(self._settings) if people is None else None
        self.people: Mapping[str, Actor] = self._actors(people)
        if self._on_file is not None:
            self.people = Accounts(self._on_file, self.kind, self.name)
        of_kind = entry.timeout(self.kind) if entry is not None else self.kind.timeout
        self._timeout = of_kind if timeout == "default" else timeout
        self._resume = resume
        self._signoff = signoff
        self._store = store
        self._task: asyncio.Task[None] | None = None
        self._own: Broker | None = None

    @abstractmethod
    def channel(self, begin: Begin | None, workers: Sequence[str]) -> Channel:
        """Make the channel. `begin` starts one of the `workers`; None: people start none from there."""

    async def start(self) -> None:
        """Start. Pending requests are shown as soon as there is a connection. Await it in the program's event loop.

        It returns at once.
        """
        if self._task is not None:
            raise WrongUse("these approvals were started already")
        workers = self._startable()
        begins: list[Begin] = []

        async def begin(heard: Heard) -> str:
            # The runner needs the reconciler, which needs the channel, which needs this callback.
            return await begins[0](heard)

        broker = self._broker()
        channel = self.channel(begin if workers else None, workers)
        reconciler = Reconciler(
            broker, [Route(channel, timeout=self._timeout)], inbox=lambda name: self._inbox(broker, name)
        )
        beside: list[Coroutine[Any, Any, None]] = []
        if self._timeout is not None:
            beside.append(end_overdue(broker, self.name, self._timeout))
        if workers:
            running = self._running(broker, reconciler)
            begins.append(running.begin)
            beside.append(running.run())
        # Runs of workers are resumed by `Running`, which starts them.
        own = Resumption(
            broker,
            reconciler,
            self.name,
            self._resume,
            only=lambda run: not (workers and run.agent),
            log=self._log,
        )
        self._task = asyncio.create_task(
            _running(reconciler, [own.run(), *beside], self._log), name=f"signoff {self.name}"
        )
        self._task.add_done_callback(partial(_report, self._log, "people are no longer asked"))
        if (signoff := self._signoff) is not None:
            signoff.reached_through(self.name)
            self._task.add_done_callback(lambda _: signoff.not_reached_through(self.name))

    async def ask_at(
        self,
        place: str,
        requests: DeferredToolRequests,
        *,
        tools: Mapping[str, ToolDefinition] | None = None,
        worker: Sequence[str] = (),
        requester: str = "",
    ) -> DeferredToolResults:
        """Ask at a place, in the channel's terms, about the calls that a run deferred."""
        return await self._handover().results(
            requests,
            conversation=f"{self.name}:{place.rstrip('/')}",
            places={self.name: place},
            worker=worker,
            tools=tools,
            requester=requester,
        )

    @asynccontextmanager
    async def at(self, place: str) -> AsyncGenerator[None]:
        """Within the context, questions of gated runs are asked at a place, in the channel's terms."""
        from signoff.gate.gated_calls import asked_at

        with asked_at(self.name, place):
            yield

    def check_started(self) -> None:
        """Raise `WrongUse` unless it runs."""
        if self._task is None:
            raise WrongUse("these approvals are not started: call await approvals.start() first")
        if self._task.done():
            error = None if self._task.cancelled() else self._task.exception()
            why = f": {error}" if error is not None else ""
            raise WrongUse(
                f"these approvals have ended{why}\n  mend that, then: await approvals.stop(), and start() again"
            ) from error

    def _handover(self) -> Handover:
        from signoff.gate.handover import Handover

        if self._signoff is not None:
            return Handover.under(self._signoff)
        assert self._own is not None, "it was started"
        return Handover.over(self._own, self._settings.layers)

    async def stop(self) -> None:
        """Stop. What is shown stays, and is updated after the next start."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError, Exception):  # its error was reported when it failed
                await task
        if self._own is not None:
            self._own.watch.close()
            if self._store is None or isinstance(self._store, str):  # a store that was passed in is closed by its owner
                self._own.store.close()
            self._own = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def _startable(self) -> tuple[str, ...]:
        """Return the workers of the file that people may start from there.

        Empty if `signoff` or `store` was given: then the store is not the project's. Raises `WrongFile` for a worker
        that is missing or invalid.
        """
        entry = self.entry
        if entry is None or not entry.workers:
            return ()
        if self._signoff is not None or self._store is not None:
            self._log.info(
                "%s: the workers of %s are not started here: this process uses another store",
                self.name,
                entry.spot.place,
            )
            return ()
        check_workers(entry, self._settings)
        return entry.workers

    def _running(self, broker: Broker, reconciler: Reconciler) -> Running:
        options = RunOptions(unattended="park", caller=Caller.here())
        return Running(
            reconciler,
            broker,
            self._settings,
            [self.name],
            options,
            observe=lambda line: self._log.info("%s: %s", self.name, safe_text(line)),
            only=lambda run: bool(run.agent),
        )

    def _broker(self) -> Broker:
        if self._signoff is not None:
            return self._signoff.broker
        given = self._store
        kept = store_for(given, self._settings) if given is None or isinstance(given, str) else given
        roles = roles_of(self._settings) or {one.name: one.roles for one in self.people.values()}
        self._own = Broker(kept, people=roles)
        if self._on_file is not None:
            self._own.people.follow(self._on_file.roles)
        return self._own

    def _inbox(self, broker: Broker, name: str) -> Inbox:
        if self._signoff is not None:
            return gate_inbox(self._signoff, name)
        return project_inbox(broker, self._settings, name)

    def _entry(self, name: str | None, *, needed: bool) -> ChannelEntry | None:
        """Return the entry of a channel of this kind. None if there is none and it is not needed."""
        settings, title = self._settings, self.kind.title or self.use
        found = {one.name: one for one in settings.channels.values() if one.use == self.use}
        if name is not None and name in found:
            return found[name]
        if name is None and found:
            if len(found) == 1 or self.use in found:
                return found.get(self.use) or next(iter(found.values()))
            raise WrongUse(f"{settings.file} has several {title} channels: name one, of {listed(found)}")
        if needed:
            where = settings.file or "a signoff.yaml here or above"
            what = f"no {title} channel {shown(name)}" if name is not None else f"no {title} channel"
            own = type(self).__name__
            raise WrongUse(f'{where} has {what}: add it, or say where to ask: {own}(bot, channel="ID", …)')
        return None

    def _actors(self, given: Mapping[str, str | int] | None) -> dict[str, Actor]:
        """Return who may answer, by account."""
        account, settings = self.kind.account, self._settings
        assert account is not None, "the kind has accounts"
        known = {person_key(person.name): person for person in settings.people.values()}
        if given is None:
            accounts = {person.name: person.accounts.get(account.key, "") for person in settings.people.values()}
            given = {name: one for name, one in accounts.items() if one}
        people: dict[str, Actor] = {}
        for name, one in ((name, str(one)) for name, one in given.items()):
            if not fullmatch(account.pattern, one):
                what = account.wrong.partition(":")[0].format(shown(one))
                raise WrongUse(f'{what} for {name}: write people={{"ana": "{account.example}"}}')
            if one in people:
                raise WrongUse(f"{name} and {people[one].name} have the same {account.what} {one}")
            person = known.get(person_key(name))
            people[one] = Actor(name=name, roles=person.roles if person is not None else frozenset(), via=self.name)
        if not people:
            where = f"nobody could answer on {self.kind.title or self.use}: {settings.file or 'signoff.yaml'}"
            raise WrongUse(
                f"{where} lists nobody's {account.what}\n"
                f'  add `{account.key}: "ID"` to people, or say {type(self).__name__}(bot, people={{"ana": "ID"}})'
            )
        return people


async def _running(reconciler: Reconciler, beside: Sequence[Coroutine[Any, Any, None]], log: logging.Logger) -> None:
    current = asyncio.current_task()
    name = current.get_name() if current is not None else ""
    tasks = [asyncio.create_task(one, name=name) for one in beside]
    for task in tasks:
        task.add_done_callback(partial(_report, log, "answered runs are no longer resumed"))
    try:
        await reconciler.run()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def _report(log: logging.Logger, what: str, task: asyncio.Task[None]) -> None:
    """Report at once that a background task failed. The caller that started it may not look at it for days."""
    if not task.cancelled() and (error := task.exception()) is not None:
        log.error("%s: %s: %s", task.get_name(), what, error_line(error), exc_info=error)
