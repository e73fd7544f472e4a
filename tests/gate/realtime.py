"""A realtime model that follows a script: PydanticAI's sessions run on it as on a provider's."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pydantic_ai.native_tools import AbstractNativeTool, CodeExecutionTool, WebSearchTool
from pydantic_ai.realtime import RealtimeModel, RealtimeModelProfile
from pydantic_ai.realtime.codec import RealtimeConnection, ToolCall, ToolResult
from pydantic_ai.realtime.lifecycle import ResponseEnded, ResponseStarted


class Line(RealtimeConnection):
    """A connection over which the model makes calls, one response after the other, and hears their results."""

    def __init__(self, calls: list[tuple[str, dict[str, Any]]], heard: list[str]) -> None:
        self.calls, self.heard = calls, heard
        self.results: asyncio.Queue[str] = asyncio.Queue()

    async def send(self, content: Any) -> None:
        if isinstance(content, ToolResult):
            await self.results.put(content.output)

    async def frames(self) -> AsyncIterator[Any]:
        for number, (tool, args) in enumerate(self.calls):
            name = f"r{number}"
            yield [ResponseStarted(response_id=name), ToolCall(f"c{number}", tool_name=tool, args=json.dumps(args))]
            yield [ResponseEnded(response_id=name, status="completed")]
            self.heard.append(await self.results.get())


class Voice(RealtimeModel):
    """A realtime model that executes two tools itself, and notes which it was offered."""

    def __init__(self, *calls: tuple[str, dict[str, Any]]) -> None:
        super().__init__()
        self.calls = list(calls)
        self.offered: list[list[str]] = []
        self.heard: list[str] = []

    @classmethod
    def supported_native_tools(cls) -> frozenset[type[AbstractNativeTool]]:
        return frozenset({WebSearchTool, CodeExecutionTool})

    @property
    def model_name(self) -> str:
        return "voice"

    @property
    def system(self) -> str:
        return "test"

    @property
    def profile(self) -> RealtimeModelProfile:
        return RealtimeModelProfile(supported_native_tools=self.supported_native_tools())

    @asynccontextmanager
    async def connect(self, **given: Any) -> AsyncIterator[RealtimeConnection]:
        self.offered.append(sorted(tool.kind for tool in given["model_request_parameters"].native_tools))
        yield Line(self.calls, self.heard)


async def session(agent: Any, model: Voice, **options: Any) -> list[str]:
    """Open a session and hear it to its end; return what the model heard of its calls."""
    async with agent.realtime(model, **options).session() as opened:
        async for _ in opened:
            pass
    return model.heard
