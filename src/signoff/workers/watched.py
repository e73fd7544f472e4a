"""A run context that notices who looks at it: a toolset that does lists its tools by the run, not once for all."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, fields
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.toolsets import AbstractToolset, CombinedToolset, DynamicToolset, WrapperToolset

_THE_SAME = frozenset({"max_retries", "retry", "retries", "agent", "model"})
"""Fields that say nothing about the run: every toolset that makes its own tools takes over the first."""
_OURS = ("pydantic_ai", "signoff", "dataclasses", "copy", "typing")


@dataclass
class WatchedContext(RunContext[Any]):
    """Remembers which of its fields code of others has looked at."""

    looks: set[str] = field(default_factory=set[str], kw_only=True, repr=False, compare=False)

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        if name in _FIELDS and _reader().partition(".")[0] not in _OURS:
            super().__getattribute__("looks").add(name)
        return value


_FIELDS = frozenset(one.name for one in fields(RunContext)) - _THE_SAME


def _reader() -> str:
    """The module that reads a field, two calls up from here."""
    return str(sys._getframe(2).f_globals.get("__name__", ""))  # pyright: ignore[reportPrivateUsage]


def watched(ctx: RunContext[Any]) -> WatchedContext:
    """The same context, watched. Copies of it are, too, and tell the same set."""
    return WatchedContext(**{one.name: getattr(ctx, one.name) for one in fields(RunContext) if one.init})


def is_made_per_run(toolset: AbstractToolset[Any]) -> bool:
    """Whether something in it makes a toolset only when a run is there."""
    if isinstance(toolset, CombinedToolset):
        return any(is_made_per_run(one) for one in toolset.toolsets)
    if isinstance(toolset, WrapperToolset):
        return is_made_per_run(toolset.wrapped)
    return isinstance(toolset, DynamicToolset)


def lists_by_itself(toolset: AbstractToolset[Any]) -> bool:
    """Whether code of others lists its tools, so that none now does not mean none ever."""
    while isinstance(toolset, WrapperToolset):
        if _is_foreign(toolset):
            return True
        toolset = toolset.wrapped
    return _is_foreign(toolset)


def _is_foreign(toolset: AbstractToolset[Any]) -> bool:
    return type(toolset).get_tools.__module__.partition(".")[0] not in ("pydantic_ai", "signoff")
