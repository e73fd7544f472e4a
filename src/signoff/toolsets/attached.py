"""A toolset with its own policy: the gate asks it about its calls, and it answers by its rules."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic_ai import ApprovalRequired, RunContext
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.toolsets import FunctionToolset, ToolsetTool

from signoff.core.call import Call
from signoff.core.verdict import Effect, Verdict
from signoff.links import followed
from signoff.policy.engine import Policy
from signoff.ports import Passed, passed


class AttachedToolset(FunctionToolset[Any]):
    """Tools, and `policy` for their calls. Without a gate around them they keep to it by themselves."""

    policy: Policy

    @property
    def starts_from(self) -> str:
        """The folder that relative paths in its calls start from."""
        return os.path.realpath(self.policy.root or os.curdir)

    def call_of(self, name: str, args: Mapping[str, Any]) -> Call:
        """The call as the toolset's own policy sees it, with links followed from the toolset's folder."""
        made = Call(tool=name, args=args, toolset=self.policy.name, start=self.starts_from)
        return made.changed(resolved=followed(self.starts_from, self.policy.paths_of(made)))

    def needs_approval(self, name: str, args: Mapping[str, Any], ctx: Any) -> Verdict:
        """What the toolset's rules say; where none speaks, an ask that gives way to the user's own rules."""
        call = self.call_of(name, args)
        return self.policy.judge_layer(call) or replace(self.policy.judge(call), yields=True)

    def describe_approval(self, name: str, args: Mapping[str, Any], ctx: Any) -> Mapping[str, Any]:
        """What the call will do, for the person who is asked."""
        return {}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """As for any toolset; where no gate has asked the toolset about the call, its own policy holds it."""
        if not may_run(ctx, name, tool_args, self.policy):
            verdict = self.needs_approval(name, tool_args, ctx)
            match held(verdict, ctx, name, tool_args):
                case Effect.DENY:
                    raise ToolFailed(verdict.reason)
                case Effect.ASK:
                    described = self.describe_approval(name, tool_args, ctx)
                    raise ApprovalRequired(metadata={"reason": verdict.reason, **described})
                case Effect.ALLOW:
                    pass
        return await super().call_tool(name, tool_args, ctx, tool)


def may_run(ctx: RunContext[Any], name: str, args: Mapping[str, Any], policy: Policy) -> bool:
    """Whether this very call was judged with this policy heard: by the gate, or by what is attached further out.

    A toolset that the gate could not see, inside of another that lists its tools as its own, was not heard.
    """
    passing = let_through(ctx, name, args)
    return passing is not None and id(policy) in passing.heard


def held(verdict: Verdict | None, ctx: RunContext[Any], name: str, args: Mapping[str, Any]) -> Effect:
    """What becomes of a call that a policy judges by itself: a deny always holds, an ask until a person answered.

    None is a policy that says nothing. Where somebody else let the call through, silence has given way already.
    """
    if verdict is not None and verdict.effect is not Effect.ASK:
        return verdict.effect
    is_silent = verdict is None or verdict.yields
    if is_answered(ctx, name, args) or (is_silent and let_through(ctx, name, args) is not None):
        return Effect.ALLOW
    return Effect.ASK


def is_answered(ctx: RunContext[Any], name: str, args: Mapping[str, Any]) -> bool:
    """Whether a person approved this very call: through a gate, or by PydanticAI's own means where there is none."""
    passing = passed.get()
    if passing is None or not _is_of(passing, ctx):
        return ctx.tool_call_approved
    return passing.answered and (passing.tool, passing.args) == (name, args)


def let_through(ctx: RunContext[Any], name: str, args: Mapping[str, Any]) -> Passed | None:
    """How this very call was let through; None where nobody has."""
    passing = passed.get()
    if passing is None or not _is_of(passing, ctx) or (passing.tool, passing.args) != (name, args):
        return None
    return passing


def _is_of(passing: Passed, ctx: RunContext[Any]) -> bool:
    return (passing.run_id, passing.call_id) == (ctx.run_id, ctx.tool_call_id)
