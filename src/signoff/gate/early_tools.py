"""Capabilities that run tools while the model is still writing a call, before the gate has seen it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic_ai.capabilities import AbstractCapability, CombinedCapability, WrapperCapability
from pydantic_ai.messages import PartStartEvent, ToolCallPart

from signoff.errors import WrongUse

_WRITING = PartStartEvent(index=0, part=ToolCallPart("tool"))


def refuse_early(root: AbstractCapability[Any]) -> None:
    """Raise `WrongUse` if a capability of a run has tools of its own and hears their calls while they are written.

    Such as code mode that runs each line of a snippet as it arrives: no denial could stop what has run.
    """
    for one in _parts(root):
        if _hears(one) and _has_tools(one):
            raise WrongUse(
                f"{type(one).__name__} has tools, and hears their calls while the model writes them: it can run them "
                "before Signoff has judged the call.\n"
                "  Switch that off, as in CodeMode(eager=False, speculate=None). A capability that only listens must "
                "have no tools"
            )


def _parts(capability: AbstractCapability[Any]) -> Iterator[AbstractCapability[Any]]:
    """Yield a capability, and those that it combines or wraps."""
    if isinstance(capability, CombinedCapability):
        inner = capability.capabilities
    elif isinstance(capability, WrapperCapability):
        inner = (capability.wrapped,)
    else:
        inner = ()
    for one in inner:
        yield from _parts(one)
    if not type(capability).__module__.startswith("pydantic_ai."):  # PydanticAI's own only pass events on
        yield capability


def _hears(capability: AbstractCapability[Any]) -> bool:
    """Return whether the capability itself, not one inside it, gets the parts of a call as the model writes them."""
    if _base(capability) is not AbstractCapability:
        return _changes(capability, "wrap_run_event_stream", "on_event")
    return capability.has_wrap_run_event_stream or capability.listens_to(_WRITING)


def _has_tools(capability: AbstractCapability[Any]) -> bool:
    return _changes(capability, "get_wrapper_toolset", "get_toolset")


def _changes(capability: AbstractCapability[Any], *hooks: str) -> bool:
    kind, base = type(capability), _base(capability)
    return any(name in vars(capability) or getattr(kind, name) is not getattr(base, name) for name in hooks)


def _base(capability: AbstractCapability[Any]) -> type[AbstractCapability[Any]]:
    """Return the class whose hooks do nothing, or pass everything on to what is inside."""
    kinds = (CombinedCapability, WrapperCapability)
    return next((kind for kind in kinds if isinstance(capability, kind)), AbstractCapability)
