"""Attach a policy to a plain PydanticAI toolset: `with_approval` marks it and returns the same object.

`Registration`, `@approval_tool` and an attribute `approval_policy` do the same in other ways. The gate reads the marks.
Without a gate, they are enforced through PydanticAI's own deferred approvals. A call that no rule matches asks, unless
a rule of the project decides.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from pydantic_ai import RunContext, Tool
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset

from signoff.attached.attached_policies import Labels, Rules, ToolsetLayer, effect_of, layer_for
from signoff.attached.checks import AttachedCheck
from signoff.attached.marks import hold, mark, may_run
from signoff.errors import WrongUse
from signoff.policy.phrases import did_you_mean

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T", bound=AbstractToolset[Any])


def with_approval(toolset: T, policy: Rules = None, *, name: str | None = None, labels: Labels | None = None) -> T:
    """Attach a policy to a toolset, and return the toolset. Rules refer to it by `name`, or by its id.

    `labels` say what its tools do, by name or glob: `{"list_*": "data.read"}`. If a toolset has several policies, the
    strictest verdict wins.
    """
    if not isinstance(toolset, AbstractToolset):  # pyright: ignore[reportUnnecessaryIsInstance] - whoever has no checker
        fix = "for a policy on a class, set its attribute approval_policy"
        raise WrongUse(f"with_approval takes a toolset, not {toolset!r}\n  {fix}")
    return mark(toolset, layer_for(toolset, policy, name=name, labels=labels))


def approval_tool(
    toolset: FunctionToolset[Any], policy: Rules = None, *, labels: Iterable[str] | str = (), **options: Any
) -> Callable[[F], F]:
    """Add a function to a toolset as a tool with its own policy: `@approval_tool(tools, "allow")`.

    `options` are those of `FunctionToolset.add_function`. The toolset's other tools have no policy attached, so they
    ask. The policy stays with the tool: in another toolset it still denies and asks, but a gate knows what it allows
    only in the toolset it was added to.
    """

    def register(function: F) -> F:
        if callable(getattr(toolset, "needs_approval", None)):
            raise WrongUse(f"{toolset.label} has its own policy: attach yours with with_approval")
        before = set(toolset.tools)
        _check_options(options)
        toolset.add_function(function, **options)
        name = next(iter(set(toolset.tools) - before))
        given = (labels,) if isinstance(labels, str) else tuple(labels)
        layer = layer_for(toolset, policy, labels={name: given} if given else None, tool=name)
        _keep_to(toolset.tools[name], layer, toolset, given)
        mark(toolset, layer)
        return function

    return register


def _check_options(options: Mapping[str, object]) -> None:
    known = [one for one in inspect.signature(FunctionToolset.add_function).parameters if one not in ("self", "func")]  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    for name, value in options.items():
        if name in ("pre_approved", "blocked"):
            fix = f"write @approval_tool(tools, {effect_of(name, value=value)!r})"
            raise WrongUse(f"approval_tool takes no {name}=: {fix}")
        if name not in known:
            raise WrongUse(f"approval_tool takes no {name}=: {did_you_mean(name, ('labels', *known))}")


def _keep_to(tool: Tool[Any], layer: ToolsetLayer, toolset: FunctionToolset[Any], labels: tuple[str, ...]) -> None:
    """Make the tool itself enforce its policy and labels, so that they also hold in any other toolset."""
    if labels:
        declared = (tool.metadata or {}).get("labels") or ()
        known = (declared,) if isinstance(declared, str) else tuple(declared)
        tool.metadata = {**(tool.metadata or {}), "labels": (*known, *labels)}
    name, schema = tool.name, tool.function_schema
    run = schema.call

    steps = [(toolset, name)]
    check = AttachedCheck(layer, name, steps, frozenset(labels))

    async def kept_to(args: dict[str, Any], ctx: RunContext[Any]) -> Any:
        if not may_run(ctx, name, args, (layer,)):
            await hold((check,), steps, name, args, ctx)
        return await run(args, ctx)

    setattr(schema, "call", kept_to)  # noqa: B010 - a method of its class
