"""Marks: policies on a toolset that is otherwise unchanged.

A marked toolset is the same object, with a subclass that only adds what enforces the policy: if no gate has judged a
call, the toolset judges it itself. The copies that it makes of itself for a run are marked as well.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar, cast

from pydantic_ai import ApprovalRequired, RunContext
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.toolsets import AbstractToolset, DynamicToolset, ToolsetTool, WrapperToolset

from signoff.attached.attached_policies import ATTRIBUTES, LAYERS, ToolsetLayer, check_tool_names, layers_of
from signoff.attached.checks import Check, checks_of, described, said
from signoff.core.verdict import Effect, Verdict
from signoff.errors import WrongUse
from signoff.policy.strictest_verdict import strictest
from signoff.ports import Passed, passed
from signoff.toolset_wrappers import Step, parts_of, way_down

T = TypeVar("T", bound=AbstractToolset[Any])


def mark(toolset: T, *layers: ToolsetLayer) -> T:
    """Attach policies to a toolset, outside of those already attached. A policy it already has is not added again."""
    known = _own(toolset)
    new = [layer for layer in layers if layer not in known]
    if new or not known:
        _set(toolset, (*new, *known))
    return toolset


def other_entry(toolset: AbstractToolset[Any], layers: Sequence[ToolsetLayer]) -> str | None:
    """Return the name of another catalog entry that marked the toolset with layers different from these, or None."""
    known = [layer for layer in _own(toolset) if layer.by_catalog]
    return (known[0].name or "another entry") if known and known != list(layers) else None


def mark_attributes(toolset: AbstractToolset[Any]) -> None:
    """Make everything in a toolset that has a policy by attribute enforce it, also in copies for a run.

    Raises `WrongUse` for a policy that misspells a tool.
    """
    for one in parts_of(toolset):
        check_tool_names(one)
        if LAYERS not in vars(one) and layers_of(one):
            _set(one, ())


def _own(toolset: AbstractToolset[Any]) -> tuple[ToolsetLayer, ...]:
    return vars(toolset).get(LAYERS, ())


def _set(toolset: AbstractToolset[Any], layers: Sequence[ToolsetLayer]) -> None:
    kind = type(toolset)
    if not hasattr(kind, "signoff_marks"):
        try:
            object.__setattr__(toolset, "__class__", marked_class(kind))
        except Exception as error:  # whatever the class does when it is subclassed
            raise WrongUse(f"no policy can be attached to {toolset.label}: {error}") from error
    vars(toolset)[LAYERS] = tuple(layers)


def unmarked_class(kind: type) -> type:
    """Return the class that a toolset had before it was marked."""
    return getattr(kind, "signoff_marks", kind)


@lru_cache(maxsize=1_024)
def marked_class(kind: type[AbstractToolset[Any]]) -> type[AbstractToolset[Any]]:
    """Return the class of marked toolsets of a kind: a subclass that adds nothing but the enforcement of the marks."""

    async def call_tool(
        self: Any, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        async def call() -> Any:
            return await kind.call_tool(self, name, tool_args, ctx, tool)

        return await kept_to(self, call, name, tool_args, ctx, tool, hold)

    async def for_run(self: Any, ctx: RunContext[Any]) -> AbstractToolset[Any]:
        return _carried(self, await kind.for_run(self, ctx))

    async def for_run_step(self: Any, ctx: RunContext[Any]) -> AbstractToolset[Any]:
        return _carried(self, await kind.for_run_step(self, ctx))

    def visit_and_replace(self: Any, visitor: Callable[[Any], Any]) -> AbstractToolset[Any]:
        new = kind.visit_and_replace(self, visitor)
        return _carried(self, new) if type(new) is type(self) else new

    methods = (call_tool, for_run, for_run_step, visit_and_replace)
    body: dict[str, Any] = {one.__name__: one for one in methods}
    body |= {"__slots__": (), "__doc__": kind.__doc__, "__module__": kind.__module__, "signoff_marks": kind}
    body["__qualname__"] = kind.__qualname__
    make: Any = type(kind)
    return make(kind.__name__, (kind,), body)


def _carried(old: AbstractToolset[Any], new: AbstractToolset[Any]) -> AbstractToolset[Any]:
    """Return what a marked toolset became for a run, with its marks."""
    if new is old:
        return new
    if unmarked_class(type(new)) is not unmarked_class(type(old)):
        new = WrapperToolset(new)  # the toolset may be shared with others
    for name in ATTRIBUTES:
        if name in vars(old):
            vars(new).setdefault(name, vars(old)[name])
    return mark(new, *_own(old))


# --- how a call was let through ---


def may_run(ctx: RunContext[Any], name: str, args: Mapping[str, Any], heard: Iterable[object]) -> bool:
    """Return whether exactly this call was judged with all of these policies: by the gate, or by a mark further out.

    A toolset that the gate could not see, inside another one that lists its tools as its own, was not judged.
    """
    passing = let_through(ctx, name, args)
    return passing is not None and passing.heard.issuperset(map(id, heard))


def held(verdict: Verdict | None, ctx: RunContext[Any], name: str, args: Mapping[str, Any]) -> Effect:
    """Return the effect for a call that a policy judges by itself: a deny always holds, an ask until a person answered.

    `verdict` is None if the policy says nothing. None, or a verdict that yields, allows a call that a gate or an outer
    mark let through.
    """
    if verdict is not None and verdict.effect is not Effect.ASK:
        return verdict.effect
    is_silent = verdict is None or verdict.yields
    if is_answered(ctx, name, args) or (is_silent and let_through(ctx, name, args) is not None):
        return Effect.ALLOW
    return Effect.ASK


def is_answered(ctx: RunContext[Any], name: str, args: Mapping[str, Any]) -> bool:
    """Return whether a person approved exactly this call, through a gate or, without one, by PydanticAI's own means."""
    passing = passed.get()
    if passing is None or not _is_of(passing, ctx):
        return ctx.tool_call_approved
    return passing.answered and (passing.tool, passing.args) == (name, args)


def let_through(ctx: RunContext[Any], name: str, args: Mapping[str, Any]) -> Passed | None:
    """Return how exactly this call was let through; None if nobody did."""
    passing = passed.get()
    if passing is None or not _is_of(passing, ctx) or (passing.tool, passing.args) != (name, args):
        return None
    return passing


def _is_of(passing: Passed, ctx: RunContext[Any]) -> bool:
    return (passing.run_id, passing.call_id) == (ctx.run_id, ctx.tool_call_id)


# --- without a gate ---


def policies_on(toolset: AbstractToolset[Any]) -> tuple[object, ...]:
    """Return the policies on a toolset: the layers attached to it, and the policy it was made with."""
    own: object = getattr(toolset, "policy", None)
    return layers_of(toolset) if own is None else (*layers_of(toolset), own)


def _alone(policy: object) -> bool:
    return isinstance(policy, ToolsetLayer) and policy.alone


Hold = Callable[[Sequence[Check], Sequence[Step], str, dict[str, Any], RunContext[Any]], Awaitable[bool]]
"""Raises an exception if the call must not run; returns whether a person has let it run."""


async def kept_to(
    toolset: AbstractToolset[Any],
    call: Callable[[], Awaitable[Any]],
    name: str,
    args: dict[str, Any],
    ctx: RunContext[Any],
    tool: ToolsetTool[Any],
    settle: Hold,
) -> Any:
    """Call the tool. If no gate has judged the call, check what is attached here and below first."""
    steps = list(way_down(toolset, name, tool))
    layers = layers_of(toolset)
    if any(may_run(ctx, called, args, layers) for _, called in steps):
        return await call()
    steps += await _made_for_run(steps, ctx)
    # A mark or gate further out knows the tool by the innermost name that is visible from there.
    known_as = next((called for _, called in steps if let_through(ctx, called, args)), steps[-1][1])
    declared = (tool.tool_def.metadata or {}).get("labels") or ()
    checks = checks_of(steps, (declared,) if isinstance(declared, str) else declared)
    answered = await settle(checks, steps, known_as, args, ctx)
    before = let_through(ctx, known_as, args)
    # A policy that decides alone, on a toolset inside this one, judges the call again by itself.
    heard = frozenset(id(one) for step, _ in steps for one in policies_on(step) if not _alone(one)).union(
        map(id, layers)
    )
    heard |= before.heard if before is not None else frozenset[int]()
    token = passed.set(Passed(ctx.run_id, ctx.tool_call_id, steps[-1][1], args, answered, heard))
    try:
        return await call()
    finally:
        passed.reset(token)


async def _made_for_run(steps: Sequence[Step], ctx: RunContext[Any]) -> list[Step]:
    """Return the rest of the way, through a toolset that was made for the run."""
    last, name = steps[-1]
    if not isinstance(last, DynamicToolset):
        return []
    tool = (await cast("AbstractToolset[Any]", last).get_tools(ctx)).get(name)
    return list(way_down(tool.toolset, name, tool)) if tool is not None else []


async def hold(
    checks: Sequence[Check], steps: Sequence[Step], name: str, args: dict[str, Any], ctx: RunContext[Any]
) -> bool:
    """Raise if the call must not run: denied, or neither allowed nor answered by a person."""
    verdict = strictest(await said(checks, lambda: dict(args), ctx))
    match held(verdict, ctx, name, args):
        case Effect.ALLOW:
            return is_answered(ctx, name, args)
        case Effect.DENY:
            raise ToolFailed(verdict.reason if verdict is not None else "")
        case Effect.ASK:
            reason = verdict.reason if verdict is not None else ""
            raise ApprovalRequired(metadata={"reason": reason, **await described(steps, lambda: dict(args), ctx)})
