"""One tool call on its way through the gate."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.toolsets import ToolsetTool

from signoff.broker import new_id
from signoff.core.call import Call
from signoff.core.request import ApprovalRequest
from signoff.core.summary import summary_of
from signoff.core.verdict import Verdict
from signoff.gate.calls import KIND, Owner
from signoff.ports import Passed

NOTHING = frozenset[int]()
EMPTY: Mapping[str, Any] = MappingProxyType({})


@dataclass(slots=True)
class Passage:
    """A call with everything it takes to judge it, ask about it, and run it."""

    ctx: RunContext[Any]
    tool: ToolsetTool[Any]
    owner: Owner | None
    args: dict[str, Any]
    """The arguments as the tool takes them: validated Python values."""
    execute: Callable[[dict[str, Any]], Awaitable[Any]]
    call: Call
    verdict: Verdict
    above: bool = False
    """Whether it passes above a toolset that another capability put on top of the gate's."""

    @property
    def was_external(self) -> bool:
        """Whether the tool's result is made elsewhere, so that running it means handing it out."""
        return (self.tool.tool_def.metadata or {}).get(KIND) == "external"

    def passed(self, *, answered: bool, request: ApprovalRequest | None = None) -> Passed:
        """What the tool's own toolset may know about how it got through."""
        owner, ctx = self.owner, self.ctx
        name, heard = (owner.name, owner.policies) if owner is not None else (self.tool.tool_def.name, NOTHING)
        shown = request.metadata if request is not None else EMPTY
        return Passed(ctx.run_id, ctx.tool_call_id, name, self.args, answered, heard, shown)

    async def request(
        self, policy_revision: str, *, changed: tuple[str, ...] = (), said: Mapping[str, Any] | None = None
    ) -> ApprovalRequest:
        """The question to put to people about this call. `said` is what the tool itself said when it asked."""
        metadata = {**await self._described(), **(said or {})}
        return ApprovalRequest(
            id=new_id(),
            tool_call_id=self.call.call_id,
            tool_name=self.call.tool,
            args=self.call.args,
            metadata=metadata,
            summary=summary_of(self.call.tool, self.call.args, metadata),
            call=self.call,
            verdict=self.verdict,
            policy_revision=policy_revision,
            schema=self.tool.tool_def.parameters_json_schema,
            changed=changed,
        )

    async def _described(self) -> Mapping[str, Any]:
        """What the toolset and its wrappers say about the call; the outermost has the last word."""
        words: dict[str, Any] = {}
        for hook in reversed(self.owner.describe_approval) if self.owner is not None else ():
            try:
                said = hook(json.loads(json.dumps(self.call.args)), self.ctx)
                if inspect.isawaitable(said):
                    said = await said
            except Exception as error:  # a description that fails must not let the call pass, nor stop the question
                said = {"description_error": repr(error)}
            if said is not None:
                words.update({"summary": said} if isinstance(said, str) else dict(said))
        return words


async def never(args: dict[str, Any]) -> Any:
    """The body of a call that is only asked about."""
    raise AssertionError("a call that is only asked about is not run")
