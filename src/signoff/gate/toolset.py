"""The last step before a tool runs. The capability puts it there; users wrap nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.toolsets import ToolsetTool, WrapperToolset

from signoff.gate.run import GatedRun


@dataclass
class GatedToolset(WrapperToolset[Any]):
    """All of an agent's toolsets, seen through the gate: no other capability comes between this and the tool."""

    run: GatedRun

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        tools = await self.wrapped.get_tools(ctx)
        self.run.covered = frozenset(tools)
        return tools

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        async def execute(args: dict[str, Any]) -> Any:
            return await self.wrapped.call_tool(name, args, ctx, tool)

        return await self.run.run_call(ctx, tool, tool_args, execute)
