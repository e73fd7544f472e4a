"""The built-in toolsets, and functions that attach a policy to others: plain PydanticAI toolsets with a policy each.

A toolset's policy ranks below the user's own rules: it allows what is known to be harmless; the rest asks, unless a
rule of the user decides. The names of the built-ins are those of the catalog. What needs `pydantic_ai`
is imported when it is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from signoff.lazy_names import lazy_names

if TYPE_CHECKING:
    from signoff.gate.gated_calls import idempotency_key as idempotency_key
    from signoff.toolsets.approval import approval_tool as approval_tool
    from signoff.toolsets.approval import with_approval as with_approval
    from signoff.toolsets.builtin_toolsets import filesystem_ro as filesystem_ro
    from signoff.toolsets.builtin_toolsets import filesystem_rw as filesystem_rw
    from signoff.toolsets.builtin_toolsets import shell_file_ops as shell_file_ops
    from signoff.toolsets.builtin_toolsets import shell_readonly as shell_readonly
    from signoff.toolsets.builtin_toolsets import sql as sql
    from signoff.toolsets.catalog import Catalog as Catalog
    from signoff.toolsets.catalog import known_tools as known_tools
    from signoff.toolsets.context import ToolsetContext as ToolsetContext
    from signoff.toolsets.factory import Registration as Registration

_HOMES = {
    "Catalog": "toolsets.catalog",
    "Registration": "toolsets.factory",
    "ToolsetContext": "toolsets.context",
    "approval_tool": "toolsets.approval",
    "filesystem_ro": "toolsets.builtin_toolsets",
    "filesystem_rw": "toolsets.builtin_toolsets",
    "idempotency_key": "gate.gated_calls",
    "known_tools": "toolsets.catalog",
    "shell_file_ops": "toolsets.builtin_toolsets",
    "shell_readonly": "toolsets.builtin_toolsets",
    "sql": "toolsets.builtin_toolsets",
    "with_approval": "toolsets.approval",
}

__all__ = sorted(_HOMES)  # pyright: ignore[reportUnsupportedDunderAll]

_find = lazy_names(__name__, _HOMES)


def __getattr__(name: str) -> object:
    return _find(name)


def __dir__() -> list[str]:
    return __all__
