"""Makes durable trips with LangChain's approvals and LangGraph's savers, in a process of its own; see `player.py`.

Where they are not installed it ends at once.
"""

from __future__ import annotations

import sqlite3
import sys
from contextlib import AsyncExitStack
from importlib.metadata import version
from pathlib import Path
from typing import Any
from uuid import uuid4

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.player import play, serve
from benchmarks.script import DONE, PROMPT, said

try:
    import aiosqlite
    from langchain_core.messages import AIMessage, HumanMessage
    from langchain_core.tools import tool
    from langgraph.checkpoint.postgres import PostgresSaver
    from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    from langgraph.checkpoint.sqlite import SqliteSaver
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
    from langgraph.types import Command
    from psycopg.rows import dict_row
    from psycopg_pool import AsyncConnectionPool, ConnectionPool
except ImportError:
    sys.exit()

from langchain.agents import create_agent

from benchmarks.langchain_peer import TALLY, ScriptedModel, gate, write_file

CONNECTIONS = 16
STACK = AsyncExitStack()


@tool("write_file")
def write_file_plainly(path: str, body: str) -> str:
    """Write a file."""
    TALLY.ran += 1
    return "ok"


def messages_before(count: int) -> list[Any]:
    kinds = (HumanMessage, AIMessage)
    return [kinds[number % 2](said(number), id=f"said-{number}") for number in range(count)]


class Asking:
    """An agent whose call is approved, on one saver."""

    def __init__(self, saver: Any, messages: int, *, plainly: bool, options: dict[str, Any]) -> None:
        self._agent = create_agent(
            ScriptedModel(calls=1),
            tools=[write_file_plainly if plainly else write_file],
            middleware=[gate()],
            checkpointer=saver,
        )
        self._before = messages_before(messages)
        self._plainly = plainly
        self._options = options

    async def pause(self) -> dict[str, Any]:
        thread = {"configurable": {"thread_id": str(uuid4())}}
        state = await self._invoke({"messages": [*self._before, HumanMessage(PROMPT)]}, thread)
        assert state["__interrupt__"]
        return thread

    async def trip(self) -> None:
        thread = await self.pause()
        state = await self._invoke(Command(resume={"decisions": [{"type": "approve"}]}), thread)
        assert state["messages"][-1].content == DONE

    async def _invoke(self, given: Any, thread: dict[str, Any]) -> Any:
        if self._plainly:
            return self._agent.invoke(given, thread, **self._options)
        return await self._agent.ainvoke(given, thread, **self._options)


async def saver_of(kind: str, place: str) -> Any:
    path = place.removeprefix("sqlite:")
    match kind:
        case "SqliteSaver":
            connection = sqlite3.connect(path, check_same_thread=False)
            STACK.callback(connection.close)
            saver = SqliteSaver(connection)
            saver.setup()
            connection.execute("pragma synchronous = full")
            return saver
        case "AsyncSqliteSaver":
            opened = await STACK.enter_async_context(aiosqlite.connect(path))
            saver = AsyncSqliteSaver(opened)
            await saver.setup()
            await opened.execute("pragma synchronous = full")
            return saver
        case "PostgresSaver":
            saver = PostgresSaver(STACK.enter_context(ConnectionPool(place, kwargs=CONNECTING)))
            saver.setup()
            return saver
        case "AsyncPostgresSaver":
            pool = AsyncConnectionPool(place, min_size=CONNECTIONS, max_size=CONNECTIONS, open=False, kwargs=CONNECTING)
            saver = AsyncPostgresSaver(await STACK.enter_async_context(pool))
            await pool.wait()
            await saver.setup()
            return saver
        case _:
            raise ValueError(f"no such saver: {kind}")


CONNECTING: dict[str, Any] = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
"""As LangGraph's documentation says."""
ASKING: dict[tuple[str, str, int], Asking] = {}


async def answer(asked: dict[str, Any]) -> dict[str, Any]:
    key = asked["variant"], asked["place"], asked["messages"]
    if key not in ASKING:
        kind, _, durability = asked["variant"].partition(", ")
        options = {"durability": durability} if durability else {}
        saver = await saver_of(kind, asked["place"])
        ASKING[key] = Asking(saver, asked["messages"], plainly=not kind.startswith("Async"), options=options)
    if "pauses" in asked:
        for _ in range(asked["pauses"]):
            await ASKING[key].pause()
        return {}
    at_once, each = asked["at_once"], asked["each"]
    played = await play(ASKING[key].trip, at_once=at_once, each=each)
    TALLY.expect(at_once * each)
    return played


async def leave() -> None:
    await STACK.aclose()


if __name__ == "__main__":
    serve(version("langgraph"), answer, leave)
