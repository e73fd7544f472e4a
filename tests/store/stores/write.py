"""Writes the store that stands beside this file, with signoff 0.1. Nothing of today's program is used.

    git worktree add /tmp/signoff-0.1 v0.1.0
    PYTHONPATH=/tmp/signoff-0.1/src:. python -m tests.store.stores.write sqlite:/tmp/store.db

What it leaves behind is what a killed process leaves: runs that wait, were answered or are done, messages in channels,
channels that fail, people who read something, a conversation, and everything still in its name.
"""

# ruff: noqa: I001 - some of what it imports is there no longer
from __future__ import annotations

import asyncio
import os
import sys
from datetime import timedelta
from typing import Any

from tests.store.stores.shop import shop

from signoff import Answerer, ApprovalDecision, open_store, resume_run
from signoff.broker.post import Post, Route
from signoff.broker.veil import veil_key
from signoff.core.decision import Remember
from signoff.core.run import KeptRun, RunState
from signoff.errors import ChannelFailed

ANA, BEN = Answerer(name="ana", roles=frozenset({"ops"})), Answerer(name="ben")


class Board:
    """A channel that shows everything, until it is told to fail."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0
        self.failures: dict[str, ChannelFailed] = {}
        """By the title of the call."""
        self.starts: ChannelFailed | None = None

    async def start(self, desk: Any) -> None:
        if self.starts is not None:
            raise self.starts

    async def show(self, notice: Any, at: str = "", beside: str = "") -> str:
        if (failure := self.failures.get(getattr(getattr(notice, "request", None), "title", ""))) is not None:
            raise failure
        self.count += 0 if at else 1
        return at or f"{self.name}/{self.count}"

    async def stop(self) -> None: ...


async def write(url: str) -> None:
    store = open_store(url)
    made: list[str] = []
    signoff, agent = shop(store, made)
    broker = signoff.broker
    board, night, away = Board("board"), Board("night"), Board("away")
    away.starts = ChannelFailed("the service is away", whole=True)
    routes = [Route(board, timeout=timedelta(days=36_500)), Route(night, backup_for="board"), Route(away)]
    post = Post(broker, routes, desk=lambda name: name)
    await veil_key(store)

    async def ask(prompt: str) -> dict[str, str]:
        """Begin a run that suspends; the ids of its requests by tool."""
        before = {one.id for one in await broker.pending()}
        await agent.run(prompt)
        return {one.tool_name: one.id for one in await broker.pending() if one.id not in before}

    await ask("pay=5 refund=7")
    read = await ask("refund=3")
    done = await ask("look=1 pay=2")
    gone = await ask("pay=4")
    await post.round()
    await broker.deliveries.opened(read["refund"], ANA)
    await broker.deliveries.opened(read["refund"], BEN)
    always = ApprovalDecision(approved=True, remember=Remember.ALWAYS)
    await broker.answer(done["pay"], always, by=ANA)
    run = (await broker.get(done["pay"])).run
    await resume_run(agent, run)
    await post.say(run, "shop", RunState.DONE, "looked 1 paid 2")
    await post.round()
    answered = await ask("refund=9")
    await broker.answer(answered["refund"], ApprovalDecision(approved=True, note="fine"), by=ANA)
    board.failures["refund(amount=11)"] = ChannelFailed("not now")
    board.failures["refund(amount=13)"] = ChannelFailed("too long", again=False)
    await ask("refund=11")
    await ask("refund=13")
    await post.round()
    began = KeptRun(id="begun-in-a-thread", agent="worker:triage", prompt="hello", options={"place": {"board": "9/"}})
    begun = await broker.runs.begin(began, talk="board:9", heard="101", put_down=True)
    await broker.runs.end(begun.id, (await broker.runs.take(begun.id)).epoch, RunState.DONE, "hello yourself")
    going = KeptRun(
        id="goes-on", agent="worker:triage", prompt="and?", options={"place": {"board": "9/"}, "chat": True}
    )
    await broker.runs.begin(going, talk="board:9", heard="102", put_down=True)
    await broker.deliveries.gone("board", gone["pay"])
    await store.flush()
    assert made == ["pay 2"], made


if __name__ == "__main__":
    asyncio.run(write(sys.argv[1]))
    sys.stdout.flush()
    os._exit(0)  # nothing is given back: the process is gone
