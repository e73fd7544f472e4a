"""`signoff serve`: the parts of the resident process, in one event loop, and how they end."""

from __future__ import annotations

import asyncio
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
from signoff.core.request import ApprovalRequest, State
from signoff.core.run import RunState
from signoff.core.visible import visible
from signoff.delivery.channel_inbox import StoreInbox
from signoff.errors import StoreError
from signoff.processes import BEAT
from signoff.server.key_identity import KeyIdentity
from signoff.server.meters import Meters
from signoff.server.record_follower import count_decisions
from signoff.server.state import ServerState
from signoff.wiring.aap_gates import ProjectGates
from signoff.wiring.answer_checks import checked_answer, refuse_unseen
from signoff.wiring.channel_runs import AT_ONCE
from signoff.wiring.channel_wiring import channel_for, check_workers, discord_people
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
    from signoff.core.people import Actor
    from signoff.delivery import Reconciler, Route
    from signoff.policy.explain import Explanation
    from signoff.ports import Begin, Channel, Heard
    from signoff.server.request_log import AnsweredRequest

AGAIN = timedelta(seconds=1)
"""Until what failed for the store's sake is tried again."""
PATIENCE = 10.0
"""Seconds that what was cancelled has to end. A tool that takes no notice is left behind with the process."""
LOOK, STALL = 0.5, 1.0
"""Seconds: how often it is looked whether the event loop stood still, and for how long that is worth a line."""
VIA = "web"
"""The name under which answers are recorded that come in here."""


class ServiceLog(Protocol):
    """Whoever is told what happens, each thing in a line for people and as data."""

    def say(self, event: str, line: str, **data: object) -> None: ...

    def watched(self, channel: Channel) -> Channel:
        """A channel about which is told what happens to it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceOptions:
    """How it is run."""

    concurrency: int = AT_ONCE
    drain: timedelta = timedelta(seconds=30)
    """How long what runs may go on once the server is to end."""
    tls: tuple[str, str] | None = None


class Service:
    """The resident process over a store: deadlines, runs, channels, the API and the pages."""

    def __init__(
        self,
        broker: Broker,
        projects: ServedProjects,
        run_options: RunOptions,
        options: ServiceOptions,
        log: ServiceLog,
        local: str = "",
    ) -> None:
        """`local`: who works here; where nobody is on file, the only person there is."""
        self.broker = broker
        self.projects = projects
        self.local = local
        self.meters = Meters()
        self.options = options
        self._log = log
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        self.pages = ""
        """Where people open the pages, once it serves."""
        self.begun = asyncio.Event()
        """Set once the store is taken and clients are answered."""
        self._store_trouble = ""
        """Why nothing can be written, as long as that is so."""
        self._doubted = asyncio.Event()
        """Set where something failed for the store's sake: then it is tried out at once."""
        self._keys = KeyIdentity(broker, projects.people, local=local)
        broker.people.follow(projects.roles)  # who is taken off the file while this runs is out
        names = self._channel_names()
        begins: list[Begin] = []

        async def begin(heard: Heard) -> str:
            # What starts runs needs the reconciler, which needs the channels, which need this.
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
        begins.append(self.runs.running.begin)
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
        """Those that people are asked on."""
        return tuple(self._channel_names())

    # --- running ---

    def stop(self) -> None:
        """End: nothing new begins, what runs may finish. Said again, it may not."""
        if self._stop.is_set():
            self._hurry.set()
            self.runs.running.hurry()
        self._stop.set()

    async def check(self) -> None:
        """Raise for what would only be found out when a run is to go on: agents that are not what the file says."""
        from signoff.workers.library_agents import library_agent

        here = self.projects.first
        for entry in here.settings.agents.values():
            found = await asyncio.to_thread(library_agent, entry, here.settings.directory)
            await found.check_store(self.broker.store)

    async def run(self, made: socket.socket, url: str) -> None:
        """Serve at a socket until `stop`. Raises `WrongUse` where another process serves the store."""
        from signoff.server.listener import listener_for, stopped

        local_host = await self._local_host(made)
        listener = listener_for(self._application(local_host), tls=self.options.tls)
        port = made.getsockname()[1]
        self.pages = self.projects.first.settings.server.url or (
            url if self.options.tls is not None else f"http://{local_host}:{port}"
        )
        if not await self._taken(url):
            return
        work = [self._kept(one) for one in (self._sweep, self._hold, self._count, self._notice_stall)]
        tasks = [asyncio.create_task(one) for one in work]
        running = asyncio.create_task(self.runs.running.run())
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
            with suppress(StoreError):  # otherwise it is found that the process is gone
                await leave_store(self.broker.ledger)
                await self.broker.store.flush()
        for task in every:
            if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                raise error

    async def _taken(self, url: str) -> bool:
        """Whether the store is this process's to serve; not so where it is to end before that is known."""

        def waits(text: str) -> None:
            self._log.say("waiting", text, text=text)

        taking = asyncio.create_task(take_store(self.broker.ledger, url, waits))
        told = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait([taking, told], return_when=asyncio.FIRST_COMPLETED)
            if taking.done():
                taking.result()
            return taking.done()
        finally:
            await _ended([taking, told])

    def _let_clients_go(self) -> None:
        """End the streams of events: whoever follows them comes back, to whoever is there then."""
        self.state.stopping.set()
        self.state.live.close("the server is shutting down")

    async def _local_host(self, made: socket.socket) -> str:
        """The name of this machine for pages. Browsers look for it where the server listens unless told otherwise."""
        host = made.getsockname()[0]
        is_usual = host in ("127.0.0.1", "::1", "0.0.0.0", "::")
        return await self._keys.local_host() if is_usual else f"[{host}]" if ":" in host else host

    def _application(self, local_host: str) -> ASGIApp:
        """What answers clients: the application, behind what guards it, and all of it in the log."""
        from signoff.server.app import application
        from signoff.server.guard import Guard
        from signoff.server.request_log import RequestLog
        from signoff.server.sign_in import SignIn

        server, provider = self.projects.first.settings.server, None
        if server.oidc is not None:
            from signoff.server.oidc import OidcProvider

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
        """Let what runs finish, for a while: as long as nobody hurries, and everything else works."""
        self.runs.drain()
        count = self.runs.running.in_hand
        if any(one.done() and not one.cancelled() and one.exception() is not None for one in every):
            return
        if count:
            what = "1 run has" if count == 1 else f"{count} runs have"
            seconds = int(self.options.drain.total_seconds())
            self._log.say("draining", f"{what} {seconds} s to finish; a second signal suspends them", runs=count)
        idle, hurried = asyncio.create_task(self.runs.running.idle()), asyncio.create_task(self._hurry.wait())
        await asyncio.wait(
            [idle, hurried], timeout=self.options.drain.total_seconds(), return_when=asyncio.FIRST_COMPLETED
        )
        if left := self.runs.running.in_hand:
            what = "1 run is" if left == 1 else f"{left} runs are"
            self._log.say("put down", f"{what} suspended, for the next process", runs=left)
        await _ended([idle, hurried])

    # --- what is done all the time ---

    async def _kept(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do something for ever. While the store does not work that is said once, and tried again."""
        while True:
            try:
                await work()
            except StoreError as error:
                self._trouble(error)
                await pause_for(self.broker.clock, AGAIN)

    def _trouble(self, error: StoreError) -> None:
        text = redact_text(str(error))
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
        """Say now and then that this process serves the store: that is written, so it shows whether anything can be."""
        self._doubted.clear()
        await check_store(self.broker.ledger)
        if self._store_trouble:
            self._store_trouble = ""
            self._log.say("store works", "the store works again")
        with suppress(TimeoutError):
            await asyncio.wait_for(self._doubted.wait(), BEAT.total_seconds())

    async def _notice_stall(self) -> None:
        """Say how long nothing here could go on: code of a tool or an agent that should not, blocked the event loop."""
        loop = asyncio.get_running_loop()
        due = loop.time() + LOOK
        await asyncio.sleep(LOOK)
        if (late := loop.time() - due) >= STALL:
            what = f"the server was blocked for {late:.1f} s: a tool blocks the loop (await, or use a plain function)"
            self._log.say("stood still", what, seconds=round(late, 1))

    async def _count(self) -> None:
        await count_decisions(self.broker, self.meters)

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
        """Those of the files that are not a terminal: nobody sits here."""
        return [
            name
            for project in self.projects.all
            for name, entry in project.settings.channels.items()
            if entry.use != "terminal"
        ]

    def _routes(self, names: list[str], begin: Begin) -> list[Route]:
        """Everything that can be wrong with a channel is wrong before any is open."""
        from signoff.delivery import Route

        routes: list[Route] = []
        for name in names:
            settings = self.projects.of_channel(name).settings
            entry = settings.channels[name]
            check_workers(entry, settings)
            if entry.use == "discord":
                discord_people(entry, settings)
                entry.secret()
            channel = self._log.watched(channel_for(entry, settings, begin=begin))
            backup = entry.backup_for if entry.backup_for in names else ""
            routes.append(Route(channel, backup_for=backup, timeout=entry.timeout))
        return routes

    def _made_reconciler(self, routes: list[Route]) -> Reconciler:
        from signoff.delivery import Reconciler

        return Reconciler(self.broker, routes, inbox=lambda name: team_inbox(self.broker, self.projects, name))


@dataclass(slots=True)
class NobodyTold:
    """Tells nobody what a run came to: no channel is run. The store has it."""

    in_hand: set[str] = field(default_factory=set[str])

    async def say(self, run_id: str, worker: str, state: RunState, text: str) -> object:
        return ()

    def tell_line(self, run_id: str, message: RunMessage) -> None:
        """Nothing."""


def team_inbox(broker: Broker, projects: ServedProjects, channel: str) -> StoreInbox:
    """The inbox under the rules of whatever project a request comes from."""

    async def check(request: ApprovalRequest, decision: ApprovalDecision) -> ApprovalDecision:
        if decision.approved:
            refuse_unseen(request)
        project = await asking_project(broker, projects, request)
        return await checked_answer(broker, project.settings, request, decision)

    async def take(request: ApprovalRequest, decision: ApprovalDecision, by: Actor) -> ApprovalRequest:
        if request.state is State.PENDING:  # whoever comes late is told that, not what is wrong with their answer
            decision = await check(request, decision)
        return await broker.answer(request.id, decision, by=by)

    return StoreInbox(broker, channel, take, check=check)


async def asking_project(broker: Broker, projects: ServedProjects, request: ApprovalRequest) -> ServedProject:
    """The project that a request comes from; the first one, where none says that it is its."""
    run = await broker.store.read(lambda tx: tx.runs.get(request.run)) if request.run else None
    return (projects.of(run) if run is not None else None) or projects.first


class TeamRules:
    """The policies of the projects, for questions about them. It implements `server.state.Rules`."""

    def __init__(self, broker: Broker, projects: ServedProjects) -> None:
        self._broker = broker
        self._projects = projects
        self._rules = {one.directory: ProjectRules(broker, one.settings) for one in projects.all}

    async def explain(self, call: Call) -> Explanation:
        """What the policy of the first project says about a call, and how it comes about."""
        return await self._rules[self._projects.first.directory].explain(call)

    async def drafts(self, request: ApprovalRequest) -> RuleDrafts:
        """Rules that could be made of a call, in the file of the project that asked about it."""
        project = await asking_project(self._broker, self._projects, request)
        return await self._rules[project.directory].drafts(request)


async def _ended(tasks: list[asyncio.Task[Any]]) -> None:
    """Cancel, and wait until that is done; not for ever."""
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=PATIENCE)
