"""The process behind `peer.py`: plays the script in LangChain, a sample for every line it is sent.

Its first line says which version it is; without LangChain it ends at once.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any
from uuid import uuid4

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.measure import timed
from benchmarks.player import serve
from benchmarks.script import DONE, PROMPT, TOOL, Tally, arguments

try:
    from langchain.agents import create_agent
    from langchain.agents.middleware import HumanInTheLoopMiddleware
    from langchain_core.language_models.chat_models import BaseChatModel
    from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
    from langchain_core.outputs import ChatGeneration, ChatResult
    from langchain_core.tools import tool
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.types import Command
except ImportError:
    sys.exit()

TALLY = Tally()


class ScriptedModel(BaseChatModel):
    calls: int

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **options: Any) -> ChatResult:
        if isinstance(messages[-1], ToolMessage):
            answer = AIMessage(content=DONE)
        else:
            made = [{"name": TOOL, "args": arguments(at), "id": f"call-{at}"} for at in range(self.calls)]
            answer = AIMessage(content="", tool_calls=made)
        return ChatResult(generations=[ChatGeneration(message=answer)])

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **options: Any) -> ChatResult:
        return self._generate(messages)


@tool
async def write_file(path: str, body: str) -> str:
    """Write a file."""
    TALLY.ran += 1
    return "ok"


def agent(calls: int, *middleware: Any, saver: Any = None) -> Any:
    return create_agent(ScriptedModel(calls=calls), tools=[write_file], middleware=middleware, checkpointer=saver)


def gate(**options: Any) -> Any:
    return HumanInTheLoopMiddleware(interrupt_on={TOOL: {"allowed_decisions": ["approve", "reject"], **options}})


def whole_run(made: Any, calls: int) -> Callable[[], Awaitable[None]]:
    async def work() -> None:
        state = await made.ainvoke({"messages": [HumanMessage(PROMPT)]})
        assert state["messages"][-1].content == DONE
        TALLY.expect(calls)

    return work


def approved_run(made: Any, calls: int) -> Callable[[], Awaitable[None]]:
    async def work() -> None:
        thread = {"configurable": {"thread_id": str(uuid4())}}
        state = await made.ainvoke({"messages": [HumanMessage(PROMPT)]}, thread)
        assert state["__interrupt__"]
        decisions = [{"type": "approve"}] * calls
        state = await made.ainvoke(Command(resume={"decisions": decisions}), thread)
        assert state["messages"][-1].content == DONE
        TALLY.expect(calls)

    return work


def work_of(variant: str, calls: int) -> Callable[[], Awaitable[None]]:
    match variant:
        case "bare":
            return whole_run(agent(calls), calls)
        case "hitl":
            return whole_run(agent(calls, gate(when=lambda request: False)), calls)
        case "approved":
            return approved_run(agent(calls, gate(), saver=InMemorySaver()), calls)
        case _:
            raise ValueError(f"no such variant: {variant}")


WORKS: dict[tuple[str, int], Callable[[], Awaitable[None]]] = {}


async def answer(asked: dict[str, Any]) -> dict[str, Any]:
    key = asked["variant"], asked["calls"]
    if key not in WORKS:
        WORKS[key] = work_of(*key)
    gc.collect()
    return {"seconds": await timed(WORKS[key])}


if __name__ == "__main__":
    serve(version("langchain"), answer)
