"""`Service`: the long-running process of `signoff serve`, its parts in one event loop, and its graceful shutdown."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

from signoff.broker import Broker
from signoff.broker.deadlines import EVERY
from signoff.broker.wall_clock import pause_for
from signoff.core.event import RunMessage
from signoff.core.redact import redact_text
from signoff.core.request import ApprovalRequest
from signoff.core.run import RunState
from signoff.core.safe_text import in_one_line
from signoff.core.visible_text import visible
from signoff.delivery import Reconciler, Route
from signoff.delivery.channel_inbox import StoreInbox
from signoff.desk.operations import Answers
from signoff.engine.care import AT_ONCE
from signoff.errors import StoreError
from signoff.large_work import SlowWork, slowest
from signoff.processes import BEAT
from signoff.server.key_identity import KeyIdentity
from signoff.server.meters import Meters
from signoff.server.oidc import OidcProvider
from signoff.server.record_follower import TimePassed, count_decisions
from signoff.server.request_log import AnsweredRequest, RequestLog
from signoff.server.state import ServerState
from signoff.wiring.aap_gates import ProjectGates
from signoff.wiring.answer_checks import checked_answer
from signoff.wiring.channel_wiring import channel_for, check_workers, kind_of
from signoff.wiring.edit_effect import with_edit_here
from signoff.wiring.job import RunOptions
from signoff.wiring.project_rules import ProjectRules
from signoff.wiring.serve_lease import check_store, leave_store, take_store
from signoff.wiring.served_projects import ServedProject, ServedProjects
from signoff.wiring.served_runs import ServedRuns

if TYPE_CHECKING:
    import socket

    from starlette.types import ASGIApp

    from signoff.channels.rule_drafts import RuleDrafts
    from signoff.core.call import Call
    from signoff.core.decision import ApprovalDecision
    from signoff.policy.explain import Explanation
    from signoff.ports import Begin, Channel, Heard

AGAIN = timedelta(seconds=1)
"""Delay before work is retried that failed because of the store."""
PATIENCE = 10.0
"""Timeout in seconds for cancelled tasks to end. A tool that ignores cancellation ends with the process."""
LOOK, STALL = 0.5, 1.0
"""Seconds: how often to check whether the event loop was blocked, and from which length a block is logged."""
VIA = "web"
"""The channel name recorded with answers that come in through the server."""


class ServiceLog(Protocol):
    """Logs what happens, each event as a line for people and as data."""

    def say(self, event: str, line: str, **data: object) -> None: ...

    def watched(self, channel: Channel) -> Channel:
        """Return the channel wrapped so that its events are logged."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceOptions:
    """Options of `signoff serve`."""

    concurrency: int = AT_ONCE
    drain: timedelta = timedelta(seconds=30)
    """Grace period for runs in progress once the server shuts down."""
    tls: tuple[str, str] | None = None


class Service:
    """The long-running process over a store: deadlines, runs, channels, the API and the web pages."""

    def __init__(
        self,
        broker: Broker,
        projects: ServedProjects,
        run_options: RunOptions,
        options: ServiceOptions,
        log: ServiceLog,
        local: str = "",
    ) -> None:
        """`local`: the name of the local user. If the files list no people, it is the only person."""
        self.broker = broker
        self.projects = projects
        self.local = local
        self.meters = Meters()
        self.options = options
        self._log = log
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        self.pages = ""
        """The URL of the web pages, once it serves."""
        self.begun = asyncio.Event()
        """Set once this process holds the store and answers clients."""
        self._store_trouble = ""
        """The error of the store while it fails; empty while it works."""
        self._seen = 0
        """The last event of the audit log before this process did anything to requests."""
        self._doubted = asyncio.Event()
        """Set when something failed because of the store, so that the store is checked at once."""
        self._keys = KeyIdentity(broker, projects.people, local=local, look=projects.look)
        broker.people.follow(projects.roles)  # somebody removed from the file while this runs loses access
        names = self._channel_names()
        begins: list[Begin] = []

        async def begin(heard: Heard) -> str:
            # The runner needs the reconciler, which needs the channels, which need this callback.
            return await begins[0](heard)

        routes = self._routes(names, begin)
        self._reconciler = self._made_reconciler(routes) if routes else None
        self.runs = ServedRuns(
            self._reconciler or NobodyTold(),
            broker,
            projects,
            run_options,
            channel_names=names,
            concurrency=options.concurrency,
            meters=self.meters,
            observe=lambda line: log.say("run", line, text=line),
            store_failed=self._trouble,
        )
        begins.append(self.runs.begin)
        self.state = state = ServerState(
            broker=broker,
            inbox=team_inbox(broker, projects, VIA),
            identify=self._keys,
            people=projects.people,
            runs=self.runs,
            rules=TeamRules(broker, projects),
            gates=ProjectGates(broker, projects),
            meters=self.meters,
            title=projects.title,
            ready=self._why_not_ready,
        )

        self.meters.streams = lambda: len(state.live)

    @property
    def channels(self) -> tuple[str, ...]:
        """Names of the channels that people are asked on."""
        return tuple(self._channel_names())

    # --- running ---

    def stop(self) -> None:
        """Shut down: start nothing new, let runs in progress finish. A second call suspends them."""
        if self._stop.is_set():
            self._hurry.set()
            self.runs.resumer.hurry()
        self._stop.set()

    async def check(self) -> None:
        """Check the library agents of the first project. Raises if one does not match its entry in the file.

        Otherwise the error would only show when a run is resumed.
        """
        from signoff.workers.library_agents import library_agent

        here = self.projects.first
        for entry in here.settings.agents.values():
            found = await asyncio.to_thread(library_agent, entry, here.settings.directory)
            await found.check_store(self.broker.store)

    async def run(self, made: socket.socket, url: str) -> None:
        """Serve at a socket until `stop`. Raises `WrongUse` if another process serves the store."""
        from signoff.server.listener import listener_for, stopped

        local_host = await self._local_host(made)
        listener = listener_for(self._application(local_host), tls=self.options.tls)
        port = made.getsockname()[1]
        self.pages = self.projects.first.settings.server.url or (
            url if self.options.tls is not None else f"http://{local_host}:{port}"
        )
        if not await self._taken(url):
            return
        self._seen = await self.broker.store.read(lambda tx: tx.record.head()[0])
        work = [self._kept(one) for one in (self._sweep, self._hold, self._count, self._notice_stall)]
        tasks = [asyncio.create_task(one) for one in work]
        running = asyncio.create_task(self.runs.run())
        asking = [asyncio.create_task(self._reconciler.run())] if self._reconciler is not None else []
        serving = asyncio.create_task(listener.serve(sockets=[made]))
        told = asyncio.create_task(self._stop.wait())
        self.begun.set()
        every = [*tasks, running, *asking, serving]
        try:
            await asyncio.wait([*every, told], return_when=asyncio.FIRST_COMPLETED)
            self._stop.set()
            self._let_clients_go()
            await self._drain([*every, told])
        finally:
            self._stop.set()
            self._let_clients_go()
            self.runs.drain()
            await self.runs.ask_nobody()
            await _ended([running, told])
            await _ended([*asking, *tasks])
            await stopped(listener, serving)
            with suppress(StoreError):  # if it fails, others notice that the process is gone
                await leave_store(self.broker.ledger)
                await self.broker.store.flush()
        for task in every:
            if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                raise error

    async def _taken(self, url: str) -> bool:
        """Take the lease to serve the store. Return False if the service is stopped before it has it."""

        def waits(text: str) -> None:
            self._log.say("waiting", text, text=text)

        served = tuple(one.root or one.directory for one in self.projects.all)
        taking = asyncio.create_task(take_store(self.broker.ledger, url, waits, projects=served))
        told = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait([taking, told], return_when=asyncio.FIRST_COMPLETED)
            if taking.done():
                taking.result()
            return taking.done()
        finally:
            await _ended([taking, told])

    def _let_clients_go(self) -> None:
        """End the event streams. Clients reconnect, to the next process that serves."""
        self.state.stopping.set()
        self.state.live.close("the server is shutting down")

    async def _local_host(self, made: socket.socket) -> str:
        """Return the host name for the pages.

        It is the local name, unless the server listens on a particular address: then it is that address.
        """
        host = made.getsockname()[0]
        is_usual = host in ("127.0.0.1", "::1", "0.0.0.0", "::")
        return await self._keys.local_host() if is_usual else f"[{host}]" if ":" in host else host

    def _application(self, local_host: str) -> ASGIApp:
        """Build the ASGI application behind its guard and the request log."""
        from signoff.server.app import application
        from signoff.server.guard import Guard
        from signoff.server.sign_in import SignIn

        server, provider = self.projects.first.settings.server, None
        if server.oidc is not None:
            provider = OidcProvider(server.oidc, server.url)
        sign_in = SignIn(self._keys, title=self.projects.title, lasts=server.session, provider=provider)
        guarded = Guard(
            application(self.state, sign_in),
            url=server.url,
            local_host=local_host,
            trusted_proxy=server.trusted_proxy,
        )
        return RequestLog(guarded, self.meters, self._answered)

    async def _drain(self, every: list[asyncio.Task[Any]]) -> None:
        """Let runs in progress finish, up to the grace period. Ends early on a second `stop` or if a part failed."""
        self.runs.drain()
        count = len(self.runs.resumer.tasks)
        if any(one.done() and not one.cancelled() and one.exception() is not None for one in every):
            return
        if count:
            what = "1 run has" if count == 1 else f"{count} runs have"
            seconds = int(self.options.drain.total_seconds())
            self._log.say("draining", f"{what} {seconds} s to finish; a second signal suspends them", runs=count)
        idle, hurried = asyncio.create_task(self.runs.idle()), asyncio.create_task(self._hurry.wait())
        await asyncio.wait(
            [idle, hurried], timeout=self.options.drain.total_seconds(), return_when=asyncio.FIRST_COMPLETED
        )
        if left := len(self.runs.resumer.tasks):
            what = "1 run is" if left == 1 else f"{left} runs are"
            self._log.say("put down", f"{what} suspended, for the next process", runs=left)
        await _ended([idle, hurried])

    # --- background work ---

    async def _kept(self, work: Callable[[], Awaitable[None]]) -> None:
        """Repeat some work forever. If the store fails, log that once and retry after `AGAIN`."""
        while True:
            try:
                await work()
            except StoreError as error:
                self._trouble(error)
                await pause_for(self.broker.clock, AGAIN)

    def _trouble(self, error: StoreError) -> None:
        text = redact_text(in_one_line(str(error)))
        self.meters.store_errors += 1
        if not self._store_trouble:
            self._log.say("store failed", f"the store failed, retrying: {text}", problem=text)
        self._store_trouble = text
        self._doubted.set()

    async def _why_not_ready(self) -> str:
        return f"the store failed: {visible(self._store_trouble)}" if self._store_trouble else ""

    async def _sweep(self) -> None:
        await self.broker.sweep()
        await self.broker.aap.sweep()
        await self.broker.signing.sign_if_due()
        await pause_for(self.broker.clock, EVERY)

    async def _hold(self) -> None:
        """Renew the lease on the store every `BEAT`. That is a write, so it shows whether the store can be written."""
        self._doubted.clear()
        await check_store(self.broker.ledger)
        if self._store_trouble:
            self._store_trouble = ""
            self._log.say("store works", "the store works again")
        with suppress(TimeoutError):
            await asyncio.wait_for(self._doubted.wait(), BEAT.total_seconds())

    async def _notice_stall(self) -> None:
        """Log how long the event loop was blocked, and by what if that is known."""
        loop = asyncio.get_running_loop()
        due = loop.time() + LOOK
        await asyncio.sleep(LOOK)
        if (late := loop.time() - due) >= STALL:
            slow = slowest(time.monotonic() - late - LOOK)
            self._log.say("stood still", stall_text(late, slow), seconds=round(late, 1))

    async def _count(self) -> None:
        await count_decisions(self.broker, self.meters, self._time_passed, self._seen)

    def _time_passed(self, passed: TimePassed) -> None:
        request, to = passed.request, passed.escalated_to
        event, what = ("escalated", f"escalated to {to}") if to else ("expired", "expired")
        told = {"request": request.id, "title": visible(request.title)} | ({"to": visible(to)} if to else {})
        self._log.say(event, f"{request.id}  {what}  {visible(request.title)}", **told)

    def _answered(self, answered: AnsweredRequest) -> None:
        took = round(answered.seconds * 1000, 1)
        line = f"{answered.method} {answered.path} {answered.status} {took} ms"
        if answered.error:
            line += f" ({answered.error})"
        self._log.say(
            "request",
            line,
            id=answered.id,
            method=answered.method,
            path=answered.path,
            status=answered.status,
            ms=took,
            **({"error": answered.error} if answered.error else {}),
        )

    # --- channels ---

    def _channel_names(self) -> list[str]:
        """Names of the configured channels, without terminals: a server has no terminal."""
        return [
            name
            for project in self.projects.all
            for name, entry in project.settings.channels.items()
            if not kind_of(entry, project.settings).at_terminal
        ]

    def _routes(self, names: list[str], begin: Begin) -> list[Route]:
        """Build a route for each channel. Errors in the entries of channels are raised before any channel is opened."""
        routes: list[Route] = []
        for name in names:
            settings = self.projects.of_channel(name).settings
            entry = settings.channels[name]
            check_workers(entry, settings)
            channel = channel_for(entry, settings, begin=begin, link=self._link)
            routes.append(Route(self._log.watched(channel), timeout=entry.timeout(kind_of(entry, settings))))
        return routes

    def _link(self, request_id: str) -> str:
        return f"{self.pages}/requests/{request_id}" if self.pages else ""

    def _made_reconciler(self, routes: list[Route]) -> Reconciler:
        return Reconciler(self.broker, routes, inbox=lambda name: team_inbox(self.broker, self.projects, name))


@dataclass(slots=True)
class NobodyTold:
    """Stands in for the reconciler if there are no channels: tells nobody. The store has the results."""

    in_hand: set[str] = field(default_factory=set[str])

    async def say(self, run_id: str, worker: str, state: RunState, text: str) -> object:
        return ()

    def tell_line(self, run_id: str, message: RunMessage) -> None:
        """Do nothing."""


def team_inbox(broker: Broker, projects: ServedProjects, channel: str) -> StoreInbox:
    """Return an inbox that checks each answer against the project that the request comes from."""

    async def edited(request: ApprovalRequest, decision: ApprovalDecision) -> ApprovalDecision:
        project = await asking_project(broker, projects, request)
        return await checked_answer(broker, project.settings, request, decision)

    return Answers(broker, edited, with_edit=with_edit_here).inbox(channel)


async def asking_project(broker: Broker, projects: ServedProjects, request: ApprovalRequest) -> ServedProject:
    """Return the project that a request comes from, or the first one if none claims it."""
    run = await broker.store.read(lambda tx: tx.runs.get(request.run)) if request.run else None
    return (projects.of(run) if run is not None else None) or projects.first


class TeamRules:
    """Answers questions about the policies of the projects. It implements `server.state.Rules`."""

    def __init__(self, broker: Broker, projects: ServedProjects) -> None:
        self._broker = broker
        self._projects = projects
        self._rules = {one.directory: ProjectRules(broker, one.settings) for one in projects.all}

    async def explain(self, call: Call) -> Explanation:
        """Explain what the policy of the first project decides about a call, and why."""
        return await self._rules[self._projects.first.directory].explain(call)

    async def drafts(self, request: ApprovalRequest) -> RuleDrafts:
        """Draft rules from a call, for the file of the project that asked about it."""
        project = await asking_project(self._broker, self._projects, request)
        return await self._rules[project.directory].drafts(request)


async def _ended(tasks: list[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait until they end, at most `PATIENCE` seconds."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=PATIENCE)


def stall_text(late: float, slow: SlowWork | None) -> str:
    """Say for how long the server stood still, and why: tools run here only in the runs that it resumes."""
    if slow is not None and slow.seconds >= late / 2:
        why = f"{visible(slow.what)} took {slow.seconds:.1f} s"
    else:
        why = "a tool blocks the loop (await, or use a plain function), or the machine was busy"
    return f"the server was blocked for {late:.1f} s: {why}"
