"""What one process does of a trip: an agent whose every step is a point where the process may die."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests, RunContext
from tests.crash.faults import Faults, FaultyStore, count_statements
from tests.crash.tools import AT_ONCE, HANDING, IN_ORDER, Model, on_stage
from tests.crash.trips import RUN, Act, Case, Inside, key_of

from signoff import Signoff
from signoff.broker import Broker, new_id
from signoff.broker.secret_key import secret_key
from signoff.core.decision import ApprovalDecision
from signoff.core.event import CallEvent
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest, State
from signoff.core.run import SavedRun
from signoff.gate.gated_agents import call_agent
from signoff.gate.gated_calls import idempotency_key
from signoff.gate.resume import resume_run
from signoff.gate.run_saver import executing
from signoff.ports import Store
from signoff.store.store_factory import open_store


class Stage:
    """The agent of a trip behind a gate, in one process."""

    def __init__(self, case: Case, store: Store, faults: Faults, *, wait: Any = None) -> None:
        """`wait` is the gate's, where it is not to be the trip's own."""
        self.case, self.faults = case, faults
        self.enter()
        trip = case.does
        self.shown: Callable[[], None] = lambda: None
        """Called when a question waits for somebody in another process."""
        self.at_terminal = trip.at_terminal
        """Whether everything is answered here, where it is asked."""
        self.store, self._wait = store, wait or trip.at_most or ("inline" if trip.waits else "suspend")
        self.gate = self._gate()
        self.inner: dict[str, Agent[Any, Any]] = {}
        """The agents inside calls, by the tool that has them do it."""
        if trip.inside is None:
            self.agent = self._agent("cashier", trip.turns, AT_ONCE if case.timing else IN_ORDER)
        else:
            self.agent = self._nested(trip.inside)

    def _gate(self) -> Signoff:
        trip = self.case.does
        return Signoff(
            list(trip.rules),
            store=self.store,
            wait=self._wait,
            approver=self,
            judge=self._judged,
            observe=self._observed,
            nested=trip.inside is not None and trip.inside.plain,
        )

    def _agent(self, name: str, turns: Any, tools: Any, gate: Signoff | None = None) -> Agent[Any, Any]:
        return Agent(
            Model(list(turns), self.faults, "" if self.case.does.inside is None else f" of {name}"),
            name=name,
            output_type=[str, DeferredToolRequests],
            tools=tools,
            capabilities=[gate or self.gate],
        )

    def _nested(self, inside: Inside) -> Agent[Any, Any]:
        """The outermost agent; each has the next one do it, and each has a gate of its own on the one store."""
        names = inside.agents
        for tool, name in zip(inside.tools, names[1:], strict=True):
            tools = HANDING if name != names[-1] else AT_ONCE if self.case.timing else IN_ORDER
            self.inner[tool] = self._agent(name, inside.turns_of(name), tools, self._gate())
        return self._agent(names[0], self.case.does.turns, HANDING)

    def enter(self) -> None:
        """From here on, tools that are called are this stage's."""
        on_stage.set(self)

    @property
    def broker(self) -> Broker:
        return self.gate.broker

    def _judged(self, call: Any, ctx: Any) -> None:
        self.faults.at(f"judged {call.tool}")

    def _observed(self, event: CallEvent) -> None:
        self.faults.at(f"told: {event.call.tool} {event.what}")

    async def choose(self, request: ApprovalRequest, *, mode: Any) -> ApprovalDecision:
        self.faults.at(f"shown {request.tool_name}")
        if not (self.at_terminal or self.case.does.answers_at_once(request)):
            if self.case.does.at_most is None:
                self.shown()
            await asyncio.Event().wait()
        decision = self.case.decide(request)
        self.faults.at(f"answered {request.tool_name}")
        return ApprovalDecision(
            approved=decision.approved,
            note=decision.note,
            edited_args=decision.edited_args,
            remember=decision.remember,
            terms=decision.terms,
            by=Actor(name="ana", via="terminal"),
        )

    async def done(self, tool: str, **args: Any) -> str:
        """Do what a tool does: its side effect is a line in a file, with the key of the call."""
        self.faults.at(f"{tool} started")
        key = idempotency_key()
        line = {"key": key, "tool": tool, "args": args, "on": await self._on_record(tool, key)}
        handle = os.open(self.case.effects, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        os.write(handle, f"{json.dumps(line)}\n".encode())
        os.fsync(handle)
        os.close(handle)
        self.faults.at(f"{tool} done")
        return f"{tool} done"

    async def hand(self, tool: str, ctx: RunContext[Any], job: str) -> str:
        """Have another agent do a job, in the way of the trip."""
        inside = self.case.does.inside
        assert inside is not None, "only agents of nested trips have others do something"
        self.faults.at(f"{tool} began")
        if inside.at_once:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._have_done(inside, tool, ctx, one)) for one in inside.jobs]
            said = "; ".join(task.result() for task in tasks)
        else:
            said = "; ".join([await self._have_done(inside, tool, ctx, one) for one in inside.jobs])
        if not inside.goes_on:
            return said
        return f"{said}; {await self.done(tool, job=job)}"

    async def _have_done(self, inside: Inside, tool: str, ctx: RunContext[Any], job: str) -> str:
        agent = self.inner[tool]
        if inside.plain:
            return (await agent.run(job, usage=ctx.usage)).output
        return await call_agent(ctx, agent, job, ends_call=not inside.goes_on)

    async def _on_record(self, tool: str, key: str) -> str:
        """What another process would find about this call at this very moment: nothing acts before it is durable."""
        if self.case.timing or tool == "look":
            return ""  # whoever counts statements is not to make more of them; and nobody is asked about a look
        async with opened(self.case.url) as store:
            run = await kept_run_of(self.case, Broker(store))
            requests = await store.read(lambda tx: tx.requests.of(run=run.id)) if run is not None else ()
            return next((str(one.state) for one in reversed(requests) if key_of(one) == key), "")


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Store]:
    store = open_store(url)
    try:
        yield store
    finally:
        store.close()


async def kept_run_of(case: Case, broker: Broker) -> SavedRun | None:
    """The case's run, where it is kept."""
    runs = await broker.store.read(lambda tx: tx.runs.all())
    found = [run for run in runs if run.prompt == case.id]
    assert len(found) <= 1, f"{len(found)} runs are kept of one"
    return found[0] if found else None


async def begin(stage: Stage, *, begun: bool | None = None) -> Any:
    """Start the agent: as `signoff run` does it, or as a program with an agent of its own."""
    case = stage.case
    if not (case.does.begun if begun is None else begun):
        return (await stage.agent.run(case.id)).output
    run = await stage.broker.runs.begin(SavedRun(id=new_id(), agent="tests:agent", prompt=case.id))
    with executing(run):
        return (await stage.agent.run(case.id)).output


async def take_up(stage: Stage) -> Any:
    run = await kept_run_of(stage.case, stage.broker)
    assert run is not None
    return (await resume_run(stage.agent, run.id, stage.gate)).output


async def answer(case: Case, broker: Broker, act: Act) -> None:
    """Answer what the act is about, and nothing else."""
    run = await kept_run_of(case, broker)
    assert run is not None
    for request in await broker.store.read(lambda tx: tx.requests.of(run=run.id)):
        if request.state is State.PENDING and request.tool_name in act.tools:
            await broker.answer(request.id, case.decide(request), by=Actor(name=act.person, via="test"))


def play(case: Case, act: Act, shown: Callable[[], None] = lambda: None, *, url: str = "") -> int:
    """What one process does, until it is done or dies; how many SQL statements that took, in SQLite.

    `url` is where it reaches its store, if somebody stands in between.
    """
    dies = case.act == act.name
    faults = Faults(case.log, act.name, case.point if dies else "")
    counted = lambda: 0  # noqa: E731
    if case.timing and case.url.startswith("sqlite:") and (dies or not case.act):
        counted = count_statements(faults, case.statement if dies else 0, reads=case.reads)
    asyncio.run(_play(case, act, faults, shown, url or case.url))
    return counted()


async def _play(case: Case, act: Act, faults: Faults, shown: Callable[[], None], url: str) -> None:
    store = FaultyStore(open_store(url), faults, lazy=not case.timing)
    if act.does == "answer":
        await answer(case, Broker(store), act)
    else:
        stage = Stage(case, store, faults)
        stage.shown = shown
        doing: Callable[[Stage], Awaitable[Any]] = begin if act.does == "run" else take_up
        case.log.add(output=str(await doing(stage)), process=act.name)
    faults.at("over")
    store.close()


def warm_up() -> None:
    """One trip, for whoever is about to fork."""
    with tempfile.TemporaryDirectory() as directory:
        case = Case(id="warm", trip="at the terminal", url=f"sqlite:{directory}/warm.db", directory=directory)
        play(case, RUN)
        try:
            import psycopg  # noqa: F401
            import psycopg_pool  # noqa: F401

            import signoff.store.postgres  # noqa: F401
        except ImportError:
            pass


def prepare(url: str) -> None:
    """Make a store that is ready to be used, as the first process to use it leaves it."""

    async def work() -> None:
        async with opened(url) as store:
            await secret_key(store)

    asyncio.run(work())
