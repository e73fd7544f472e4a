"""Runs in a store that outlives its processes, and the moments at which they are attacked."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests
from tests.gate.agents import calls
from tests.ready import ready

from signoff import ApprovalDecision, Signoff
from signoff.broker import Broker
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest
from signoff.store.sqlite import SqliteStore
from signoff.testing import ScriptedModel

YES, NO = ApprovalDecision(approved=True), ApprovalDecision(approved=False)
ANA = Actor(name="ana")
PATIENCE = 60
"""Seconds after which something that should happen at once counts as never happening."""


class Silent:
    """An approver who is asked and never says anything."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def choose(self, request: ApprovalRequest, *, mode: Any) -> ApprovalDecision:
        self.asked.set()
        await asyncio.Event().wait()
        raise AssertionError("nobody sets this")


class Place:
    """A store in a file. Every gate and broker made here opens it as a process of its own would."""

    def __init__(self, directory: Path) -> None:
        self.file = directory / "signoff.db"
        self.url = f"sqlite:{self.file}"
        self._stores: list[SqliteStore] = []

    def store(self) -> SqliteStore:
        self._stores.append(SqliteStore(ready(self.file)))
        return self._stores[-1]

    def gate(self, rules: Any, *, dies: bool = False, **options: Any) -> Signoff:
        signoff = Signoff(rules, **{"wait": "suspend", "store": self.store(), **options})
        if dies:  # whoever looks for its process finds nobody
            signoff.broker.ledger._process = replace(signoff.broker.process, born="long ago")
        return signoff

    def broker(self, **options: Any) -> Broker:
        return Broker(self.store(), **options)

    async def answer(self, decision: ApprovalDecision = YES) -> list[ApprovalRequest]:
        """Answer all there is, from elsewhere."""
        broker = self.broker()
        return [await broker.answer(one.id, decision, by=ANA) for one in await broker.pending()]

    async def record(self) -> str:
        """All there is on the record, as text."""
        for store in self._stores:
            await store.flush()
        return await self.store().read(lambda tx: "\n".join(f"{one.kind} {one.body}" for one in tx.record.entries()))

    def close(self) -> None:
        for store in self._stores:
            store.close()


def gated(signoff: Signoff, turns: list[dict[str, Any]], *tools: Any, **options: Any) -> Agent[Any, Any]:
    """An agent that may pause, with these tools behind the gate."""
    output: Any = [str, DeferredToolRequests]
    return Agent(ScriptedModel(turns), output_type=output, tools=tools, capabilities=[signoff], **options)


def turns(*made: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """A script: one call each turn, then the end, which says the last result."""
    return [*(calls(one) for one in made), {"say": "{{last}}"}]


async def paused(signoff: Signoff, agent: Agent[Any, Any]) -> str:
    """Run until it waits; the id of the kept run."""
    result = await agent.run("go")
    assert isinstance(result.output, DeferredToolRequests)
    return (await signoff.pending())[0].run


def falls_asleep(broker: Broker) -> asyncio.Event:
    """Set once something waits for an answer, having looked and found none."""
    asleep, real = asyncio.Event(), broker._woken_or_due

    async def sleeps(request: ApprovalRequest, signal: asyncio.Event) -> None:
        asleep.set()
        await real(request, signal)

    broker._woken_or_due = sleeps  # type: ignore[method-assign]
    return asleep


async def soon(awaited: Any) -> Any:
    """What should happen at once."""
    return await asyncio.wait_for(awaited, PATIENCE)
