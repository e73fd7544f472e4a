"""The trips that processes are killed on: what an agent does, who answers what, and in which process."""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests, Tool
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models.function import AgentInfo

from signoff import Signoff
from signoff.broker import Broker, new_id
from signoff.core.decision import ApprovalDecision, Remember
from signoff.core.event import CallEvent
from signoff.core.people import Answerer
from signoff.core.request import ApprovalRequest, State
from signoff.core.run import KeptRun
from signoff.core.terms import Scope, Terms
from signoff.gate.frames import idempotency_key, keeping
from signoff.gate.suspended import resume_run
from signoff.ports import Store
from signoff.store.open import open_store
from signoff.testing import ScriptedModel
from tests.crash.faults import Faults, FaultyStore, Log, count_statements

USES = 1
"""How often the grant of a trip may be used."""


@dataclass(frozen=True, slots=True)
class Act:
    """What one process does of a trip."""

    name: str
    does: str
    """`run`, `answer` or `resume`."""
    person: str = "ana"
    tools: tuple[str, ...] = ()
    """What an answer is about."""


def _calls(*made: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"calls": [{"tool": tool, "args": args} for tool, args in made]}


SAYS: dict[str, Any] = {"say": "{{last}}"}
PAY = ("pay", {"amount": 5, "to": "shop"})
LOOK: tuple[str, dict[str, Any]] = ("look", {})
RULES: list[dict[str, Any]] = [{"allow": {"tool": "look"}}, {"deny": {"tool": "wipe"}, "reason": "never"}]
RUN, ANSWER, RESUME = Act("run", "run"), Act("answer", "answer", tools=("pay",)), Act("resume", "resume")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trip:
    """One way from a call to its outcome, over the processes that take part."""

    name: str
    title: str
    acts: tuple[Act, ...]
    turns: tuple[dict[str, Any], ...] = (_calls(LOOK), _calls(PAY), SAYS)
    rules: tuple[dict[str, Any], ...] = tuple(RULES)
    waits: bool = False
    """Whether the run waits in place; otherwise it ends and is resumed."""
    at_terminal: bool = False
    """Whether it is answered in the process that asks."""
    begun: bool = False
    """Whether the run is kept from its beginning, as `signoff run` does it, or from its first question on."""
    pays: int = 1
    """How many calls of `pay` the agent makes."""
    edited: dict[str, Any] | None = None
    grants: bool = False
    quorum: int = 1


TRIPS = {
    trip.name: trip
    for trip in (
        Trip(
            name="in place",
            title="the run waits where it is, and is answered by another process",
            acts=(RUN, ANSWER),
            waits=True,
            begun=True,
        ),
        Trip(
            name="at the terminal",
            title="the run waits where it is, and is answered there, with changed arguments",
            acts=(RUN,),
            turns=(_calls(PAY), SAYS),
            waits=True,
            at_terminal=True,
            begun=True,
            edited={"amount": 3, "to": "shop"},
        ),
        Trip(
            name="suspended",
            title="the run ends, is answered, and is resumed: three processes",
            acts=(RUN, ANSWER, RESUME),
            turns=(_calls(PAY), SAYS),
        ),
        Trip(
            name="batch",
            title="four calls at once: allowed, approved, denied by a person, denied by policy; resumed when half of it is decided",
            acts=(
                RUN,
                ANSWER,
                RESUME,
                Act("second answer", "answer", tools=("drop",)),
                Act("second resume", "resume"),
            ),
            turns=(_calls(LOOK, PAY, ("drop", {"what": "orders"}), ("wipe", {})), SAYS),
        ),
        Trip(
            name="grant",
            title="an approval that also holds for the next call like it, once; the third is asked about again",
            acts=(RUN,),
            turns=(_calls(PAY), _calls(PAY), _calls(PAY), SAYS),
            waits=True,
            at_terminal=True,
            begun=True,
            pays=3,
            grants=True,
        ),
        Trip(
            name="quorum",
            title="two people have to agree",
            acts=(RUN, ANSWER, Act("second answer", "answer", person="ben", tools=("pay",)), RESUME),
            turns=(_calls(PAY), SAYS),
            rules=(*RULES, {"ask": {"tool": "pay"}, "quorum": 2}),
            quorum=2,
        ),
    )
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A trip on which one process dies at one point, or none."""

    id: str
    trip: str
    url: str
    folder: str
    act: str = ""
    """Which process dies; empty: none does, and every point is noted."""
    point: str = ""
    statement: int = 0
    """Die before this SQL statement instead."""
    timing: bool = False
    """Whether what nobody waits for is written when it always is, and not as late as may be."""

    @property
    def does(self) -> Trip:
        return TRIPS[self.trip]

    @property
    def log(self) -> Log:
        return Log(Path(self.folder) / "log")

    @property
    def effects(self) -> Path:
        return Path(self.folder) / "effects"

    def decide(self, request: ApprovalRequest) -> ApprovalDecision:
        """What people say about a request, whoever asks and however often."""
        if request.tool_name == "drop":
            return ApprovalDecision(approved=False, note="not this one")
        first = request.call is not None and request.call.call_id == "call-1-1"
        if self.does.grants and first:
            terms = Terms(scope=Scope.RUN, max_uses=USES)
            return ApprovalDecision(approved=True, remember=Remember.ALWAYS, terms=terms)
        return ApprovalDecision(approved=True, edited_args=self.does.edited)


def effects_of(case: Case) -> list[dict[str, Any]]:
    """What the tools really did."""
    return [json.loads(line) for line in case.effects.read_text("utf-8").splitlines()] if case.effects.exists() else []


def key_of(request: ApprovalRequest) -> str:
    """The idempotency key of the call that a request is about."""
    assert request.call is not None
    return sha256(request.call.key.encode()).hexdigest()[:32]


class Stage:
    """One process's part of a trip: an agent whose every step is a point where the process may die."""

    def __init__(self, case: Case, store: Store, faults: Faults, *, suspends: bool | None = None) -> None:
        self.case, self.faults = case, faults
        _on_stage.append(self)
        trip = case.does
        waits = trip.waits if suspends is None else not suspends
        self.shown: Callable[[], None] = lambda: None
        """Called when a question waits for somebody in another process."""
        self.gate = Signoff(
            list(trip.rules),
            store=store,
            wait="inline" if waits else "suspend",
            approver=self,
            judge=self._judged,
            observe=self._observed,
        )
        self.agent = Agent(
            _Model(list(trip.turns), faults),
            name="cashier",
            output_type=[str, DeferredToolRequests],
            tools=AT_ONCE if case.timing else IN_ORDER,
            capabilities=[self.gate],
        )

    @property
    def broker(self) -> Broker:
        return self.gate.broker

    def _judged(self, call: Any, ctx: Any) -> None:
        self.faults.at(f"judged {call.tool}")

    def _observed(self, event: CallEvent) -> None:
        self.faults.at(f"told: {event.call.tool} {event.what}")

    async def choose(self, request: ApprovalRequest, *, mode: Any) -> ApprovalDecision:
        self.faults.at(f"shown {request.tool_name}")
        if not self.case.does.at_terminal:
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
            by=Answerer(name="ana", via="terminal"),
        )

    async def done(self, tool: str, **args: Any) -> str:
        """Do what a tool does: its side effect is a line in a file, with the key of the call."""
        self.faults.at(f"{tool} started")
        key = idempotency_key()
        line = {"key": key, "tool": tool, "args": args, "on": await self._on_record(key)}
        handle = os.open(self.case.effects, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
        os.write(handle, f"{json.dumps(line)}\n".encode())
        os.fsync(handle)
        os.close(handle)
        self.faults.at(f"{tool} done")
        return f"{tool} done"

    async def _on_record(self, key: str) -> str:
        """What another process would find about this call at this very moment: nothing acts before it is durable."""
        async with opened(self.case.url) as store:
            run = await kept_run_of(self.case, Broker(store))
            requests = await store.read(lambda tx: tx.requests_of(run=run.id)) if run is not None else ()
            return next((str(one.state) for one in reversed(requests) if key_of(one) == key), "")


_on_stage: list[Stage] = []
"""The one of this process."""


async def look() -> str:
    """Look at the balance."""
    return await _on_stage[-1].done("look")


async def pay(amount: int, to: str) -> str:
    """Pay money."""
    return await _on_stage[-1].done("pay", amount=amount, to=to)


async def drop(what: str) -> str:
    """Throw something away."""
    return await _on_stage[-1].done("drop", what=what)


async def wipe() -> str:
    """Throw everything away."""
    return await _on_stage[-1].done("wipe")


AT_ONCE = [Tool(tool) for tool in (look, pay, drop, wipe)]
IN_ORDER = [Tool(tool, sequential=True) for tool in (look, pay, drop, wipe)]
"""Made once, before anything forks: that takes longer than a trip."""


class _Model(ScriptedModel):
    def __init__(self, turns: list[dict[str, Any]], faults: Faults) -> None:
        super().__init__(turns)
        self._faults = faults

    def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self._faults.at(f"model, turn {1 + sum(isinstance(one, ModelResponse) for one in messages)}")
        return super()._answer(messages, info)


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Store]:
    store = open_store(url)
    try:
        yield store
    finally:
        store.close()


async def kept_run_of(case: Case, broker: Broker) -> KeptRun | None:
    """The case's run, where it is kept."""
    runs = await broker.store.read(lambda tx: tx.runs())
    found = [run for run in runs if run.prompt == case.id]
    assert len(found) <= 1, f"{len(found)} runs are kept of one"
    return found[0] if found else None


async def begin(stage: Stage) -> Any:
    """Start the agent: as `signoff run` does it, or as a program with an agent of its own."""
    case = stage.case
    if not case.does.begun:
        return (await stage.agent.run(case.id)).output
    run = await stage.broker.runs.begin(KeptRun(id=new_id(), agent="tests:agent", prompt=case.id))
    with keeping(run):
        return (await stage.agent.run(case.id)).output


async def take_up(stage: Stage) -> Any:
    run = await kept_run_of(stage.case, stage.broker)
    assert run is not None
    return (await resume_run(stage.agent, run.id, stage.gate)).output


async def answer(case: Case, broker: Broker, act: Act) -> None:
    """Answer what the act is about, and nothing else."""
    run = await kept_run_of(case, broker)
    assert run is not None
    for request in await broker.store.read(lambda tx: tx.requests_of(run=run.id)):
        if request.state is State.PENDING and request.tool_name in act.tools:
            await broker.answer(request.id, case.decide(request), by=Answerer(name=act.person, via="test"))


def play(case: Case, act: Act, shown: Callable[[], None] = lambda: None) -> int:
    """What one process does, until it is done or dies; how many SQL statements that took."""
    dies = case.act == act.name
    faults = Faults(case.log, act.name, case.point if dies else "")
    counted = count_statements(faults, case.statement if dies else 0) if case.timing else lambda: 0
    asyncio.run(_play(case, act, faults, shown))
    return counted()


async def _play(case: Case, act: Act, faults: Faults, shown: Callable[[], None]) -> None:
    store = FaultyStore(open_store(case.url), faults, lazy=not case.timing)
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
    with tempfile.TemporaryDirectory() as folder:
        case = Case(id="warm", trip="at the terminal", url=f"sqlite:{folder}/warm.db", folder=folder)
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
            await Broker(store).veil_key()

    asyncio.run(work())
