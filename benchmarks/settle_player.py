"""Answers requests, or commits bare rows, in a process of its own, whose syncs can be counted and slowed."""

from __future__ import annotations

import asyncio
import gc
import sqlite3
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.agents import agent, tools
from benchmarks.durable_trips import ANA, YES, CountingStore, counting_store
from benchmarks.player import serve
from benchmarks.policies import ASK_ALL
from benchmarks.script import PROMPT, Tally
from signoff import Signoff
from signoff.broker import Broker
from signoff.core.request import ApprovalRequest, State

ROW = b"x" * 200


class Settling:
    """A broker with requests that wait for answers."""

    def __init__(self, store: CountingStore, original: ApprovalRequest) -> None:
        self._store, self._original = store, original
        self._broker = Broker(store)

    @classmethod
    async def open(cls, place: str) -> Settling:
        store = counting_store(place)
        gate = Signoff(ASK_ALL, wait="suspend", store=store)
        await agent(1, tools(Tally()), gate, suspends=True).run(PROMPT)
        return cls(store, (await gate.pending())[0])

    async def answer(self, count: int, at_once: int) -> dict[str, Any]:
        """Seconds and commits to answer that many, of which none waits longer than it has to."""
        waiting = await self._broker.open([self._another() for _ in range(count)])
        before, gate = self._store.commits, asyncio.Semaphore(at_once)

        async def one(request: ApprovalRequest) -> None:
            async with gate:
                settled = await self._broker.answer(request.id, YES, by=ANA)
            assert settled.state is State.APPROVED

        gc.collect()
        start = time.perf_counter()
        await asyncio.gather(*map(one, waiting))
        return {"seconds": time.perf_counter() - start, "commits": self._store.commits - before}

    def _another(self) -> ApprovalRequest:
        assert self._original.call is not None
        return self._original.changed_to(id="", version=0, call=self._original.call.changed(run_id=str(uuid4())))


def sqlite_commit(place: str) -> Callable[[], object]:
    """Commits one row."""
    connection = sqlite3.connect(place.removeprefix("sqlite:"), isolation_level=None)
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = full")
    connection.execute("create table rows (nr integer primary key, body blob not null)")
    return lambda: connection.execute("insert into rows (body) values (?)", (ROW,))


def postgres_commit(place: str) -> Callable[[], object]:
    import psycopg

    connection = psycopg.connect(place, autocommit=True)
    connection.execute("create table rows (nr bigint generated always as identity primary key, body bytea not null)")
    return lambda: connection.execute("insert into rows (body) values (%b)", (ROW,), prepare=True)


COMMITS: dict[str, Callable[[], object]] = {}
SETTLING: dict[str, Settling] = {}


async def answer(asked: dict[str, Any]) -> dict[str, Any]:
    place, count, at_once = asked["place"], asked["count"], asked["at_once"]
    if at_once:
        if place not in SETTLING:
            SETTLING[place] = await Settling.open(place)
        return await SETTLING[place].answer(count, at_once)
    if place not in COMMITS:
        COMMITS[place] = sqlite_commit(place) if place.startswith("sqlite:") else postgres_commit(place)
    commit = COMMITS[place]
    start = time.perf_counter()
    for _ in range(count):
        commit()
    return {"seconds": time.perf_counter() - start, "commits": count}


if __name__ == "__main__":
    serve("signoff", answer)
