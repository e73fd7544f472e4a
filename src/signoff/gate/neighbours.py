"""Other capabilities on the same agent: which of them could change a call after it was judged."""

from __future__ import annotations

from typing import Any

from pydantic_ai.capabilities import AbstractCapability, CombinedCapability, WrapperCapability

_HARMLESS = frozenset({"ToolSearch", "IncludeReturnSchemas", "SetToolMetadata", "DeferredCapabilityLoader"})
"""PydanticAI's own capabilities whose toolsets only add, hide or describe tools."""


def wraps_tools(capability: AbstractCapability[Any] | None, gate: type[AbstractCapability[Any]]) -> bool:
    """Whether it, or what it wraps, puts a toolset of its own around others."""
    if capability is None or isinstance(capability, gate):
        return False
    kind = type(capability)
    if kind.__module__.startswith("pydantic_ai.capabilities.") and kind.__qualname__ in _HARMLESS:
        return False
    if isinstance(capability, CombinedCapability):
        return any(wraps_tools(one, gate) for one in capability.capabilities)
    if isinstance(capability, WrapperCapability):
        own = kind.get_wrapper_toolset is not WrapperCapability.get_wrapper_toolset
        return own or "get_wrapper_toolset" in vars(capability) or wraps_tools(capability.wrapped, gate)
    own = kind.get_wrapper_toolset is not AbstractCapability.get_wrapper_toolset
    return own or "get_wrapper_toolset" in vars(capability)


def hooks_execution(capability: AbstractCapability[Any] | None, gate: type[AbstractCapability[Any]]) -> bool:
    """Whether it has a say when a tool is executed."""
    if capability is None or isinstance(capability, gate):
        return False
    kind = type(capability)
    return (
        kind.before_tool_execute is not AbstractCapability.before_tool_execute
        or kind.wrap_tool_execute is not AbstractCapability.wrap_tool_execute
    )
