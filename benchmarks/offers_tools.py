"""An MCP server on standard input and output: it has the tools that are named on its command line."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool


async def _tools(context: object, params: object) -> ListToolsResult:
    return ListToolsResult(tools=[Tool(name=name, input_schema={"type": "object"}) for name in sys.argv[1:]])


async def _call(context: object, params: object) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text="done")])


async def _serve() -> None:
    server: Server[Any] = Server("tools", on_list_tools=_tools, on_call_tool=_call)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(_serve())
