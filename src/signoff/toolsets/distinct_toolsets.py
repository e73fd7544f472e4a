"""The toolsets of one worker combined, with a clear error if two tools have the same name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.exceptions import UserError
from pydantic_ai.toolsets import AbstractToolset, CombinedToolset, ToolsetTool, WrapperToolset

from signoff.attached.attached_policies import name_on
from signoff.errors import WrongUse
from signoff.policy.phrases import shown


def together(toolsets: Sequence[AbstractToolset[Any]]) -> list[AbstractToolset[Any]]:
    """Combine toolsets for an agent. Names that servers list only at run time are checked too."""
    return [DistinctToolsets(list(toolsets))] if toolsets else []


@dataclass
class DistinctToolsets(CombinedToolset[Any]):
    """Combined toolsets whose tools must have different names."""

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        try:
            return await super().get_tools(ctx)
        except UserError as error:
            await self._check(ctx, error)
            raise

    async def _check(self, ctx: RunContext[Any], error: UserError) -> None:
        owner: dict[str, str] = {}
        for toolset in self.toolsets:
            name = name_of(toolset)
            for tool in await toolset.get_tools(ctx):
                if tool in owner:
                    what = f"{shown(owner[tool])} and {shown(name)} both have a tool {shown(tool)}"
                    fix = f"leave one of the two out, or give one a prefix: toolsets: {{{name}: {{prefix: …}}}}"
                    raise WrongUse(f"{what}\n  {fix}") from error
                owner[tool] = name


def name_of(toolset: AbstractToolset[Any]) -> str:
    """The name of a toolset for people: its name in the catalog, its id, or its kind, whatever wraps it."""
    one = toolset
    while True:
        if (named := name_on(one)) is not None:
            return named
        if not isinstance(one, WrapperToolset):
            return one.id or one.label
        one = one.wrapped
