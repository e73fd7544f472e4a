"""Base class of toolsets that have their own policy, which the gate asks about each call."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from types import MethodType
from typing import Any

from pydantic_ai import ApprovalRequired, RunContext, Tool
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.toolsets import FunctionToolset, ToolsetTool

from signoff.attached.marks import held, may_run
from signoff.core.call import Call
from signoff.core.verdict import Effect, Verdict
from signoff.links import looked_up
from signoff.policy.engine import Policy

_schemas: dict[Any, Any] = {}
"""Tool schemas by function. They are cached because creating one takes milliseconds."""


def _tool(method: MethodType) -> Tool[Any]:
    kept = _schemas.get(method.__func__)
    if kept is None:  # holds the function, not the method, so that it keeps no toolset alive
        kept = _schemas[method.__func__] = replace(Tool[Any](method).function_schema, function=method.__func__)
    # Copies, because the tools of one run may be changed while they are prepared, without affecting other runs.
    told = {"json_schema": deepcopy(kept.json_schema), "return_schema": deepcopy(kept.return_schema)}
    return Tool(method, function_schema=replace(kept, function=method, **told))


class AttachedToolset(FunctionToolset[Any]):
    """A toolset with a `policy` for its calls. Without a gate, it enforces the policy itself."""

    policy: Policy

    def __init__(self, methods: Iterable[MethodType], *, id: str) -> None:
        super().__init__([_tool(method) for method in methods], id=id)

    @property
    def starts_from(self) -> str:
        """The directory that relative paths in its calls are resolved against."""
        return os.path.realpath(self.policy.root or os.curdir)

    def call_of(self, name: str, args: Mapping[str, Any]) -> Call:
        """The call as the toolset's own policy sees it, with symlinks resolved from the toolset's directory."""
        made = Call(tool=name, args=args, toolset=self.policy.name, start=self.starts_from)
        return looked_up(made, self.policy, self.starts_from)

    def needs_approval(self, name: str, args: Mapping[str, Any], ctx: Any) -> Verdict:
        """The verdict of the toolset's rules. If none matches, an *ask* that the user's own rules can override."""
        call = self.call_of(name, args)
        return self.policy.judge_layer(call) or replace(self.policy.judge(call), yields=True)

    def describe_approval(self, name: str, args: Mapping[str, Any], ctx: Any) -> Mapping[str, Any]:
        """What the call will do, for the approver."""
        return {}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Call a tool. If no gate has asked the toolset about the call, its own policy is enforced here."""
        if not may_run(ctx, name, tool_args, (self.policy,)):
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
