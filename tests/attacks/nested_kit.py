"""Agents that run other agents and do something of their own besides, and processes that die right after that."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, RunContext
from tests.crash.fork import Child
from tests.nested.cells import Log
from tests.nested.kit import ANA, World, calls, waits
from tests.nested.test_several import runner

from signoff import ApprovalDecision, call_agent, resume
from signoff.core.request import ApprovalRequest
from signoff.core.terms import Scope, Terms

ASK_ALL: list[dict[str, Any]] = [{"allow": ["look*", "fail*"]}, {"ask": ["ask*", "pay*"]}]
ONCE = ApprovalDecision(approved=True, terms=Terms(scope=Scope.PROJECT, max_uses=1))
ONE_CALL = calls(("ask_b", {"question": "?"}, "a-1"))


def caller(world: World, body: Any, *tools: Any, rules: Any = None, turns: Any = None, **gate: Any) -> Agent[Any, Any]:
    """The agent A. Its tool `ask_b` has this body: `async (ctx, question) -> str`."""
    made = world.gate(rules, **gate)
    return world.agent("a", turns or ONE_CALL, runner(world, "b", body), *tools, gate=made)


def books(world: World, agent: Agent[Any, Any], **options: Any) -> Any:
    """The body of a tool that runs an agent, and then does something itself."""

    async def body(ctx: RunContext[Any], question: str) -> str:
        said = await call_agent(ctx, agent, question, **options)
        world.did.append("booked")
        return said

    return body


def booking(world: World, rules: Any = None) -> Agent[Any, Any]:
    """A's tool runs B, which pays if a person says so, and then books."""
    return caller(world, books(world, world.payer("b", 1, gate=world.gate(rules))), rules=rules)


async def paused_inside(world: World, *, granted: bool, answer: ApprovalDecision = ONCE) -> tuple[Any, str]:
    """A run whose outer call was let through and waits inside: its result, and its id."""
    if granted:
        await booking(world, ASK_ALL).run("first")
        await world.answer("a-1", answer)
    result = await booking(world, ASK_ALL if granted else None).run("second")
    [request] = (await world.pending()).values()
    assert request.call is not None and request.call.path == "a-1/b-1"
    return result, request.run


class Mostly:
    """An approver who says yes, but nothing at all about some tools. Whoever wants to know hears of those."""

    def __init__(self, *silent: str) -> None:
        self._silent = silent
        self.asked = asyncio.Event()
        self.on_asked: Callable[[], None] = self.asked.set

    async def choose(self, request: ApprovalRequest, *, mode: Any) -> ApprovalDecision:
        if request.tool_name in self._silent:
            self.on_asked()
            await asyncio.Event().wait()
        return ApprovalDecision(approved=True, by=ANA)


async def until_asked(approver: Mostly, awaited: Any) -> Any:
    """As `wait_for`, with a time limit that is up once somebody is asked."""
    async with asyncio.timeout(None) as limit:
        now = asyncio.get_running_loop().time
        approver.on_asked = lambda: limit.reschedule(now())
        return await awaited


# --- an approved call that does something besides running other agents, and a process that dies right after it ---


class Doomed:
    """A's call `ask_b` is approved, and books something without having said that it does. Then the process is gone."""

    def __init__(self, directory: str, way: str, *, dies: bool) -> None:
        self.world, self.dies = World(Path(directory), lambda world: self.build()), dies
        self.way: Any = getattr(self, way)
        self.effects = Log(f"{directory}/effects")
        self.approver = Mostly(*(() if way.startswith("failed") else ("pay_b",)))
        inline = dies and way != "swallowed"
        self.world.defaults = {"approver": self.approver, "wait": "inline" if inline else "suspend"}
        self.world.defaults["nested"] = way.endswith("unchanged")
        if not dies:  # nobody is asked in place
            self.approver.asked.set()

    def build(self) -> Agent[Any, Any]:
        world = self.world

        def fail_b() -> str:
            raise ValueError("no connection")

        turns = [*calls(("pay_b", {"amount": 1}, "b-1"))[:1], *calls(("fail_b", {}, "b-2"))]
        failing = [fail_b] if self.way.__name__.startswith("failed") else []
        turns = turns if failing else calls(("pay_b", {"amount": 1}, "b-1"))
        self.b = world.agent("b", turns, self.pay("b"), *failing, gate=world.gate(ASK_ALL))
        c = calls(("pay_c", {"amount": 1}, "c-1"))
        self.c = world.agent("c", c, self.pay("c"), gate=world.gate(ASK_ALL))

        async def body(ctx: RunContext[Any], question: str) -> str:
            await self.way(ctx)
            await self.book()
            return "booked elsewhere"

        return caller(world, body, rules=ASK_ALL)

    def pay(self, name: str) -> Any:
        def pay(amount: int) -> str:
            self.effects.add(did=f"pay {name}")
            return "paid"

        pay.__name__ = f"pay_{name}"
        return pay

    async def book(self) -> None:
        self.effects.add(did="booked")
        await self.world.flush()
        if self.dies:
            os.kill(os.getpid(), signal.SIGKILL)

    # --- ways to go on besides a run inside ---

    async def swallowed(self, ctx: RunContext[Any]) -> None:
        try:
            await call_agent(ctx, self.b, "go")
        except Exception:
            self.effects.add(did="swallowed")

    async def failed(self, ctx: RunContext[Any]) -> None:
        try:
            await call_agent(ctx, self.b, "go")
        except ValueError:
            self.effects.add(did="failed")

    async def failed_unchanged(self, ctx: RunContext[Any]) -> None:
        try:
            await self.b.run("go")
        except ValueError:
            self.effects.add(did="failed")

    async def beside(self, ctx: RunContext[Any]) -> None:
        self.task = asyncio.create_task(call_agent(ctx, self.b, "go"))
        await self.approver.asked.wait()

    async def out_of_time(self, ctx: RunContext[Any]) -> None:
        try:
            await until_asked(self.approver, call_agent(ctx, self.b, "go"))
        except TimeoutError:
            self.effects.add(did="out of time")

    async def out_of_time_unchanged(self, ctx: RunContext[Any]) -> None:
        try:
            await until_asked(self.approver, self.b.run("go"))
        except TimeoutError:
            self.effects.add(did="out of time")

    async def first_of_two(self, ctx: RunContext[Any]) -> None:
        for one in asyncio.as_completed([call_agent(ctx, self.b, "go"), call_agent(ctx, self.c, "go")]):
            await one
            await self.approver.asked.wait()
            return

    async def promised_for_another(self, ctx: RunContext[Any]) -> None:
        async def step() -> None:
            await call_agent(ctx, self.c, "go")
            await self.approver.asked.wait()
            await self.book()

        await asyncio.gather(step(), call_agent(ctx, self.b, "go", ends_call=True))


WAYS = (
    "swallowed failed failed_unchanged beside out_of_time out_of_time_unchanged first_of_two promised_for_another"
).split()


def dies_and_is_resumed(directory: str, way: str) -> dict[str, Any]:
    """What tools did before and after, and how the outer call stands."""
    Child(_dies, directory, way).wait()
    before = [one["did"] for one in Log(f"{directory}/effects").lines()]
    return {"before": before, **Child(_goes_on, directory, way).wait()}


def _dies(directory: str, way: str) -> None:
    async def work() -> None:
        doomed = Doomed(directory, way, dies=True)
        if waits(await doomed.world.begin()):
            await doomed.world.answer("a-1")
            await doomed.world.go_on()

    asyncio.run(work())


def _goes_on(directory: str, way: str) -> dict[str, Any]:
    async def work() -> dict[str, Any]:
        doomed = Doomed(directory, way, dies=False)
        waited = waits(await doomed.world.go_on())
        [outer] = [one for one in await doomed.world.requests() if one.tool_name == "ask_b"]
        after = [one["did"] for one in doomed.effects.lines()]
        return {"waits": waited, "after": after, "state": str(outer.state)}

    return asyncio.run(work())


# --- the same for a call that a grant for one use let through ---


def dies_on_a_grant(directory: str, wait: str) -> list[str]:
    """What tools did, when the call was let through, booked, died with its process, and was resumed."""
    Child(_granted, directory, wait).wait()
    return Child(_goes_on_granted, directory).wait()


def _books_and_dies(world: World, *, dies: bool) -> Agent[Any, Any]:
    b = world.payer("b", 1, gate=world.gate(ASK_ALL))

    async def body(ctx: RunContext[Any], question: str) -> str:
        said = await call_agent(ctx, b, question)
        Log(f"{world.directory}/effects").add(did="booked")
        await world.flush()
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)
        return said

    return caller(world, body, rules=ASK_ALL)


def _granted(directory: str, wait: str) -> None:
    async def work() -> None:
        world = World(Path(directory))
        await _books_and_dies(world, dies=False).run("first")
        await world.answer("a-1", ONCE)
        world.defaults = {"wait": wait, "approver": Mostly()}
        await _books_and_dies(world, dies=True).run("second")
        request = await world.answer("a-1/b-1")
        await resume(_books_and_dies(world, dies=True), request.run)

    asyncio.run(work())


def _goes_on_granted(directory: str) -> list[str]:
    async def work() -> list[str]:
        world = World(Path(directory))
        [run] = [one for one in await world.store().read(lambda tx: tx.runs.all()) if one.prompt == "second"]
        assert waits((await resume(_books_and_dies(world, dies=False), run.id)).output), "a person is asked"
        return [one["did"] for one in Log(f"{directory}/effects").lines()]

    return asyncio.run(work())
