"""A built toolset on its own, for whoever wants to look at it without a worker."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from pydantic_ai import Agent, RunContext
from pydantic_ai.capabilities import NativeTool
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RunUsage

from signoff.toolsets.catalog import BuiltToolset


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolWords:
    """What a model is told about a tool."""

    description: str = ""
    arguments: tuple[str, ...] = ()
    required: frozenset[str] = frozenset()


def agent_with(built: BuiltToolset, name: str | None = None) -> Agent[Any, Any]:
    """An agent that has this toolset and nothing else. It is only looked at: it has no model."""
    toolsets = [built.toolset] if built.toolset is not None else []
    return Agent(name=name, toolsets=toolsets, capabilities=[NativeTool(tool) for tool in built.native])


@asynccontextmanager
async def connected(built: BuiltToolset, connect: bool) -> AsyncGenerator[None]:
    """While inside, a server is connected to, once for all that is asked of it; with `connect` only."""
    if built.toolset is None or not connect:
        yield
        return
    async with built.toolset:
        yield


async def words_of(built: BuiltToolset) -> dict[str, ToolWords]:
    """What a model is told about each tool, by name."""
    if built.toolset is None:
        return {tool.kind: ToolWords(description="run by the model's provider") for tool in built.native}
    # The model is never asked anything: toolsets only want to be told that there is one.
    ctx = RunContext[Any](deps=None, model=TestModel(), usage=RunUsage())
    found: dict[str, ToolWords] = {}
    for name, tool in (await built.toolset.get_tools(ctx)).items():
        schema = tool.tool_def.parameters_json_schema
        found[name] = ToolWords(
            description=tool.tool_def.description or "",
            arguments=tuple(schema.get("properties", {})),
            required=frozenset(schema.get("required", ())),
        )
    return found
