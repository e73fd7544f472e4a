"""List a toolset's tools without a run, and tell whether a run could have others."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from pydantic_ai import RunContext
from pydantic_ai.toolsets import AbstractToolset, CombinedToolset, DynamicToolset, ToolsetTool, WrapperToolset

RUN_FIELDS = (
    *("deps", "prompt", "messages", "usage", "usage_limits", "deadline", "metadata", "model_settings"),
    *("run_id", "conversation_id", "run_step", "validation_context", "workspace"),
    *("loaded_capability_ids", "discovered_tool_names"),
)
"""Fields that only a run has. PydanticAI lists tools without any of them: only other code uses one while listing."""


class UsedWhileListing(Exception):
    """Something that only a run has was used to list tools."""


class RunStandIn:
    """Stands for something that only a run has: every use of it is noted and raises."""

    def __init__(self, uses: list[str], name: str) -> None:
        self._uses, self._name = uses, name

    def _use(self, *_: object) -> NoReturn:
        self._uses.append(self._name)
        raise UsedWhileListing(self._name)

    __getattr__ = __bool__ = __len__ = __iter__ = __contains__ = __getitem__ = __call__ = __index__ = _use
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __hash__ = __str__ = __repr__ = _use
    __class__ = property(_use)  # pyright: ignore[reportIncompatibleMethodOverride]  # what isinstance uses


@dataclass(frozen=True, slots=True)
class ToolListing:
    """The tools that a toolset lists."""

    tools: Sequence[ToolsetTool[Any]]
    by_run: bool
    """Whether a run may have others."""


async def listing_of(toolset: AbstractToolset[Any], ctx: RunContext[Any], *, connect: bool) -> ToolListing | None:
    """Return the tools without a run; None if a server has to be started first and may not be.

    They are listed twice: with nothing in the context, and with stand-ins. If the two differ, or a stand-in was used,
    the tools depend on the run.
    """
    starts = is_server(toolset)
    if starts and not connect:
        return None
    whole = CombinedToolset([toolset])  # as in an agent: then a tool knows all toolsets on the way
    async with toolset if starts else nullcontext():
        tools = await whole.get_tools(ctx)
        if is_made_per_run(toolset) or (not tools and lists_by_itself(toolset)):
            return ToolListing(list(tools.values()), by_run=True)
        uses: list[str] = []
        try:
            again = await whole.get_tools(replace(ctx, **{name: RunStandIn(uses, name) for name in RUN_FIELDS}))
        except Exception:  # without stand-ins it raised nothing
            return ToolListing(list(tools.values()), by_run=True)
    same = {name: tool.tool_def for name, tool in tools.items()} == {name: one.tool_def for name, one in again.items()}
    return ToolListing(list(tools.values()), by_run=bool(uses) or not same)


def is_server(toolset: AbstractToolset[Any]) -> bool:
    """Return whether it contains an MCP server."""
    module = sys.modules.get("pydantic_ai.mcp")  # code that has an MCP toolset has imported it
    kind = getattr(module, "MCPToolset", None)
    leaves: list[AbstractToolset[Any]] = []
    toolset.apply(leaves.append)
    return kind is not None and any(isinstance(one, kind) for one in leaves)


def is_made_per_run(toolset: AbstractToolset[Any]) -> bool:
    """Return whether it contains a toolset that is only made in a run."""
    if isinstance(toolset, CombinedToolset):
        return any(is_made_per_run(one) for one in toolset.toolsets)
    if isinstance(toolset, WrapperToolset):
        return is_made_per_run(toolset.wrapped)
    return isinstance(toolset, DynamicToolset)


def lists_by_itself(toolset: AbstractToolset[Any]) -> bool:
    """Return whether code of others lists its tools, so that an empty list now may not be empty later."""
    while isinstance(toolset, WrapperToolset):
        if _is_foreign(toolset):
            return True
        toolset = toolset.wrapped
    return _is_foreign(toolset)


def _is_foreign(toolset: AbstractToolset[Any]) -> bool:
    return type(toolset).get_tools.__module__.partition(".")[0] not in ("pydantic_ai", "signoff")
