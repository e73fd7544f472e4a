"""Crashes of agents inside calls that need a stage of their own. Each function is a whole case."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests, RunContext, TextOutput, Tool
from tests.crash.drive import OPERATOR, requests_of, settle
from tests.crash.faults import Faults, FaultyStore
from tests.crash.fork import Child
from tests.crash.stage import Stage, begin, kept_run_of, take_up
from tests.crash.tools import pay
from tests.crash.trips import PAY, SAYS, Case, calls, effects_of

from signoff.core.request import State
from signoff.errors import ScriptEnded
from signoff.gate.gated_agents import call_agent
from signoff.store.store_factory import open_store
from signoff.testing import ScriptedModel


def nested(url: str, directory: str, point: str, begun: bool = True) -> dict[str, Any]:
    """An agent calls another, whose call is asked about; the process dies there."""
    case = Case(id=directory, trip="at the terminal", url=url, directory=directory)

    def stage_of(faults: Faults) -> Stage:
        stage = Stage(case, FaultyStore(open_store(url), faults), faults)
        stage.enter()
        inner = Agent(ScriptedModel([calls(PAY), SAYS]), name="inner", tools=[Tool(pay)], capabilities=[stage.gate])

        async def look() -> str:
            """Have the other agent do it."""
            return (await inner.run("pay")).output

        stage.agent = Agent(
            ScriptedModel([calls(("look", {})), SAYS]),
            name="outer",
            output_type=[str, DeferredToolRequests],
            tools=[Tool(look)],
            capabilities=[stage.gate],
        )
        return stage

    def dies() -> None:
        stage = stage_of(Faults(case.log, "run", point))
        asyncio.run(begin(stage, begun=begun))

    async def goes_on() -> dict[str, Any]:
        stage = stage_of(Faults(case.log, "restart"))
        await stage.broker.sweep()
        found = [str(one.state) for one in await requests_of(case, stage.broker)]
        for request in await requests_of(case, stage.broker):
            if request.state is State.UNKNOWN:
                await stage.broker.tell(request.id, happened=True, by=OPERATOR)
        run = await kept_run_of(case, stage.broker)
        output = await (take_up(stage) if run is not None else begin(stage, begun=begun))
        requests = await requests_of(case, stage.broker)
        stage.broker.store.close()
        return {
            "found": found,
            "output": output,
            "states": [str(one.state) for one in requests],
            "lines": [[line["key"], line["on"]] for line in effects_of(case)],
        }

    assert Child(dies).wait() is None
    return Child(lambda: asyncio.run(goes_on())).wait()


@dataclass
class Receipt:
    """What an agent answers with that has no JSON form which leads back to it."""

    signed: Callable[[], str]


def goes_on(url: str, directory: str, how: str, written: bool) -> dict[str, Any]:
    """The run inside an approved call ends in an unusual way, the tool does something more, and the process dies.

    `written`: what the run inside did is on record by then, which nobody waits for.
    """
    case = Case(id=directory, trip="in place", url=url, directory=directory)

    def stage_of(faults: Faults) -> Stage:
        stage = Stage(case, FaultyStore(open_store(url), faults), faults)
        stage.at_terminal = True
        inner = _inner(stage, how)

        async def hand(ctx: RunContext[Any], job: str) -> str:
            """Have another agent do it, and write it down."""
            with suppress(ScriptEnded):
                await call_agent(ctx, inner, job)
            if written:
                await stage.store.flush()
            return await stage.done("hand", job=job)

        stage.agent = Agent(
            ScriptedModel([calls(("hand", {"job": "pay"})), SAYS]),
            name="outer",
            output_type=[str, DeferredToolRequests],
            tools=[Tool(hand)],
            capabilities=[stage.gate],
        )
        return stage

    def dies() -> None:
        asyncio.run(begin(stage_of(Faults(case.log, "run", "hand done")), begun=True))

    async def goes_on() -> dict[str, Any]:
        stage = stage_of(Faults(case.log, "restart"))
        await stage.broker.sweep()
        requests = await requests_of(case, stage.broker)
        found = {one.tool_name: str(one.state) for one in requests}
        for request in requests:
            if request.state is State.UNKNOWN:
                await settle(case, stage.broker, request)
        output = await take_up(stage)
        stage.broker.store.close()
        return {"found": found, "output": output, "ran": [line["tool"] for line in effects_of(case)]}

    assert Child(dies).wait() is None
    return Child(lambda: asyncio.run(goes_on())).wait()


def _inner(stage: Stage, how: str) -> Agent[Any, Any]:
    """An agent that pays, and then ends as is said."""

    def signed(words: str) -> Any:
        return Receipt(lambda: words)

    turns = [calls(PAY)] if how == "fails" else [calls(PAY), SAYS]
    output: Any = str if how == "fails" else TextOutput(signed)
    return Agent(ScriptedModel(turns), name="inner", output_type=output, tools=[Tool(pay)], capabilities=[stage.gate])
