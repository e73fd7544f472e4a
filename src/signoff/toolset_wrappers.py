"""Look through PydanticAI's wrapped and combined toolsets, to find what each toolset on the way declares."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic_ai.toolsets import (
    AbstractToolset,
    CombinedToolset,
    PrefixedToolset,
    RenamedToolset,
    ToolsetTool,
    WrapperToolset,
)

Step = tuple[AbstractToolset[Any], str]
"""A toolset on the way to a tool, and the tool's name there."""


def way_down(toolset: AbstractToolset[Any], name: str, tool: ToolsetTool[Any] | None = None) -> Iterator[Step]:
    """Yield the toolsets that a call of `name` goes through, outermost first, each with the tool's name there.

    `tool` is the tool as `toolset` lists it: it says which part of a combined toolset it comes from.
    """
    while True:
        yield toolset, name
        if isinstance(toolset, CombinedToolset):
            source = getattr(tool, "source_toolset", None)
            if source is None:
                return
            toolset, tool = source, getattr(tool, "source_tool", None)
            continue
        if not isinstance(toolset, WrapperToolset):
            return
        if isinstance(toolset, PrefixedToolset):
            name = name.removeprefix(f"{toolset.prefix}_")
        elif isinstance(toolset, RenamedToolset):
            name = toolset.name_map.get(name, name)
        toolset = toolset.wrapped


def parts_of(toolset: AbstractToolset[Any]) -> Iterator[AbstractToolset[Any]]:
    """Yield a toolset and everything it wraps and combines."""
    yield toolset
    inner = toolset.toolsets if isinstance(toolset, CombinedToolset) else ()
    inner = (toolset.wrapped,) if isinstance(toolset, WrapperToolset) else inner
    for one in inner:
        yield from parts_of(one)


def steps_of(tool: ToolsetTool[Any]) -> list[Step]:
    """Return the toolsets that a call goes through, outermost first, for a tool of the agent's whole toolset."""
    name, source = tool.tool_def.name, getattr(tool, "source_toolset", None)
    steps = list(way_down(source or tool.toolset, name, getattr(tool, "source_tool", tool)))
    if not any(one is tool.toolset for one, _ in steps):  # a toolset made for each run lists another's tools
        steps += way_down(tool.toolset, steps[-1][1], tool)
    return steps
