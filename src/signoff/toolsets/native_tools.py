"""Native tools, which the model's provider runs itself: web search, code execution …

Their calls never reach signoff, so nobody can be asked about them. A policy can only decide whether they are offered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai.native_tools import NATIVE_TOOL_TYPES, AbstractNativeTool

from signoff.config.config_check import GivenConfig, Shape, checked
from signoff.policy.phrases import did_you_mean, listed


def native_tool(given: GivenConfig) -> AbstractNativeTool:
    """Create the native tool that `config` describes: `kind`, and the parameters of PydanticAI's tool of that kind."""
    kind = given.values.get("kind")
    known = kinds()
    if kind is None:
        raise given.wrong("`config.kind` is missing", fix=f"which tool: {listed(known)}")
    if not isinstance(kind, str) or kind not in known:
        what = f"there is no native tool {given.shown(kind)}" if isinstance(kind, str) else "this should be a text"
        raise given.wrong(what, at=("kind",), fix=did_you_mean(str(kind), known))
    return checked(Shape(known[kind], {}, {}, model=known[kind]), given)


def kinds() -> Mapping[str, Any]:
    """The native tools, by kind."""
    return {kind: one for kind, one in sorted(NATIVE_TOOL_TYPES.items()) if not kind.startswith("unknown")}


def native_schema(kind: object) -> dict[str, Any]:
    """The JSON schema for the config of a native tool; without a known kind, a schema that lists the kinds."""
    known = kinds()
    if not isinstance(kind, str) or kind not in known:
        return {"type": "object", "properties": {"kind": {"enum": list(known)}}, "required": ["kind"]}
    return TypeAdapter(known[kind]).json_schema()
