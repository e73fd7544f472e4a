"""What toolsets declare about their calls, gathered through PydanticAI's wrappers and combinations."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

from signoff.core.verdict import Effect, Verdict
from signoff.wrapped import way_down


def hook_of(toolset: AbstractToolset[Any], name: str) -> Callable[..., Any] | None:
    """An optional method, as in `ports.DeclaresApproval`."""
    found = getattr(toolset, name, None)
    return found if callable(found) else None


async def said(
    toolset: AbstractToolset[Any], name: str, args: Mapping[str, Any], ctx: RunContext[Any]
) -> list[Verdict]:
    """What a toolset itself says about a call, as a layer. A check that fails asks."""
    hook = hook_of(toolset, "needs_approval")
    if hook is None:
        return []
    try:
        answer = hook(name, dict(args), ctx)
        if inspect.isawaitable(answer):
            answer = await answer
        return [] if answer is None else [_as_verdict(answer)]
    except Exception as error:
        problem = f"the toolset's own check failed: {error!r}"
        return [Verdict(effect=Effect.ASK, rules=("toolset",), reason=problem, errors=(problem,))]


def _as_verdict(answer: object) -> Verdict:
    if isinstance(answer, Verdict):
        return answer
    effect = (Effect.ASK if answer else Effect.ALLOW) if isinstance(answer, bool) else Effect(str(answer))
    return Verdict(effect=effect, rules=("toolset",), reason="the toolset's own check says so")


async def described(
    toolset: AbstractToolset[Any], name: str, args: Mapping[str, Any], ctx: RunContext[Any]
) -> Mapping[str, Any]:
    """What a toolset says a call will do."""
    hook = hook_of(toolset, "describe_approval")
    if hook is None:
        return {}
    try:
        words = hook(name, dict(args), ctx)
        if inspect.isawaitable(words):
            words = await words
    except Exception as error:  # a description that fails must not let the call pass, nor stop the question
        return {"description_error": repr(error)}
    if words is None:
        return {}
    return {"summary": words} if isinstance(words, str) else dict(words)


def labels_by(
    hook_name: str,
    toolset: AbstractToolset[Any],
    name: str,
    args: Mapping[str, Any],
    ctx: Any,
    tool: ToolsetTool[Any] | None,
) -> frozenset[str]:
    """All labels that a toolset and what it wraps declare for a call through hooks of that name."""
    found: set[str] = set()
    for one, called in way_down(toolset, name, tool):
        if (hook := hook_of(one, hook_name)) is not None:
            found.update(hook(called, args, ctx))
    return frozenset(found)
