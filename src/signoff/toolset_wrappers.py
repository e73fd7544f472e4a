"""Looking through PydanticAI's wrappers and combinations of toolsets, for whatever a toolset on the way declares."""

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
"""A toolset on the way to a tool, and what the tool is called there."""


def way_down(toolset: AbstractToolset[Any], name: str, tool: ToolsetTool[Any] | None = None) -> Iterator[Step]:
    """The toolsets a call of `name` goes through, outermost first, each with what the tool is called there.

    `tool` is the tool as `toolset` lists it: it tells which part of a combination it comes from.
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
    """A toolset and everything it wraps and combines."""
    yield toolset
    inner = toolset.toolsets if isinstance(toolset, CombinedToolset) else ()
    inner = (toolset.wrapped,) if isinstance(toolset, WrapperToolset) else inner
    for one in inner:
        yield from parts_of(one)


def steps_of(tool: ToolsetTool[Any]) -> list[Step]:
    """The toolsets that a call of a tool goes through, as the agent's whole toolset lists it, outermost first."""
    name, source = tool.tool_def.name, getattr(tool, "source_toolset", None)
    steps = list(way_down(source or tool.toolset, name, getattr(tool, "source_tool", tool)))
    if not any(one is tool.toolset for one, _ in steps):  # a toolset that is made for each run lists tools of another
        steps += way_down(tool.toolset, steps[-1][1], tool)
    return steps
