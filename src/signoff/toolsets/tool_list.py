"""A built toolset on its own, to inspect it without a worker."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Agent
from pydantic_ai.capabilities import NativeTool

from signoff.toolsets.catalog import BuiltToolset


def agent_with(built: BuiltToolset, name: str | None = None) -> Agent[Any, Any]:
    """An agent with only this toolset and no model, for inspection."""
    toolsets = [built.toolset] if built.toolset is not None else []
    return Agent(name=name, toolsets=toolsets, capabilities=[NativeTool(tool) for tool in built.native])
