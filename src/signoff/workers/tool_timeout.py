"""The `tool_timeout` of a worker file, applied to the catalog's tools, which PydanticAI's own timeout leaves out."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ModelRetry
from pydantic_ai.toolsets import ToolsetTool, WrapperToolset
from pydantic_ai.toolsets.function import FunctionToolsetTool


@dataclass
class TimedToolset(WrapperToolset[Any]):
    """A toolset whose tools are stopped after a timeout, unless a tool has its own."""

    seconds: float

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        tools = await self.wrapped.get_tools(ctx)
        return {
            name: tool
            if tool.tool_def.timeout is not None
            else replace(tool, tool_def=replace(tool.tool_def, timeout=self.seconds))
            for name, tool in tools.items()
        }

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        if isinstance(tool, FunctionToolsetTool):  # it enforces the timeout itself, in threads too
            return await super().call_tool(name, tool_args, ctx, tool)
        try:
            async with asyncio.timeout(tool.tool_def.timeout):
                return await super().call_tool(name, tool_args, ctx, tool)
        except TimeoutError:
            raise ModelRetry(f"Timed out after {tool.tool_def.timeout:g} seconds.") from None
