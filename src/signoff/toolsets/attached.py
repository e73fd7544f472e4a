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

    def call_of(self, name: str, args: Mapping[str, Any]) -> Call:
        """The call as the toolset's own policy sees it, with links followed from the toolset's folder."""
        made = Call(tool=name, args=args, toolset=self.policy.name)
        root = os.path.realpath(self.policy.root or os.curdir)
        return made.changed(resolved=followed(root, self.policy.paths_of(made)))

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
        """As for any toolset; where no gate has judged the call, the toolset's own policy does."""
        if not may_run(ctx, name, tool_args):
            verdict = self.needs_approval(name, tool_args, ctx)
            if verdict.effect is Effect.DENY:
                raise ToolFailed(verdict.reason)
            if verdict.effect is Effect.ASK:
                described = self.describe_approval(name, tool_args, ctx)
                raise ApprovalRequired(metadata={"reason": verdict.reason, **described})
        return await super().call_tool(name, tool_args, ctx, tool)


def may_run(ctx: RunContext[Any], name: str, args: Mapping[str, Any]) -> bool:
    """Whether somebody judged this very call: a gate around it, or PydanticAI's own approval where there is none."""
    passing = passed.get()
    if passing is None or (passing.run_id, passing.call_id) != (ctx.run_id, ctx.tool_call_id):
        return ctx.tool_call_approved
    return (passing.tool, passing.args) == (name, args)


def let_through(ctx: RunContext[Any], name: str, args: Mapping[str, Any]) -> Passed | None:
    """How the gate let this very call through; None where no gate has."""
    passing = passed.get()
    mine = passing is not None and (passing.run_id, passing.call_id) == (ctx.run_id, ctx.tool_call_id)
    return passing if passing is not None and mine and may_run(ctx, name, args) else None
