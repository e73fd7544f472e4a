"""Read and judge the calls of one run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import SecretBytes, SecretStr
from pydantic_ai import RunContext
from pydantic_ai.toolsets import ToolsetTool

from signoff.core.quorum import who
from signoff.core.request import ApprovalRequest
from signoff.core.verdict import Effect, Verdict
from signoff.errors import EditRefused
from signoff.gate.arguments import unfaithful, validated
from signoff.gate.gated_calls import GatedCall, Seals, running_call
from signoff.gate.nesting import Level
from signoff.gate.tools import Origin, origin_of

UNJUDGED = Verdict(effect=Effect.ASK, reason="not judged yet")
"""Verdict of a call that takes awaiting to judge."""


@dataclass(slots=True)
class CallJudge:
    """Reads and judges the calls of one run. Caches what is the same for all calls of a tool."""

    level: Level
    seals: Seals = field(default_factory=Seals)
    _origins: dict[str, tuple[ToolsetTool[Any], Origin]] = field(
        default_factory=dict[str, "tuple[ToolsetTool[Any], Origin]"]
    )

    async def judged(
        self, ctx: RunContext[Any], tool: ToolsetTool[Any], args: dict[str, Any], execute: Callable[..., Awaitable[Any]]
    ) -> GatedCall:
        """Return the call with its final verdict."""
        gated = self.read(ctx, tool, args, execute)
        if gated.verdict is UNJUDGED:
            gated.verdict = await self.level.gate.verdict(ctx, tool.tool_def, gated.call, gated.origin)
        return gated

    def read(
        self, ctx: RunContext[Any], tool: ToolsetTool[Any], args: dict[str, Any], execute: Callable[..., Awaitable[Any]]
    ) -> GatedCall:
        """Return the call, already judged if that takes no awaiting: for most calls it does not."""
        tool_def = tool.tool_def
        origin, around = self._origin(tool), running_call()
        call = self.level.gate.reader.read(ctx, tool_def, args, origin, around.workers, around.path)
        if call.args is not args and (lost := unfaithful(ctx, tool, args, call)):
            call = call.changed(unreadable=(*call.unreadable, *lost))
        verdict = self.level.gate.plain_verdict(tool_def, call, origin)
        return GatedCall(ctx, tool, origin, args, execute, call, verdict or UNJUDGED, self.seals, self.level)

    def _origin(self, tool: ToolsetTool[Any]) -> Origin:
        """Return where the tool comes from. In the next step the same name may be a tool of another toolset."""
        known, origin = self._origins.get(tool.tool_def.name, (None, None))
        if origin is None or known is not tool:
            origin = origin_of(tool)
            self._origins[tool.tool_def.name] = (tool, origin)
        return origin

    async def edited(self, gated: GatedCall, args: Mapping[str, Any]) -> GatedCall:
        """Return the same call with a person's arguments, read and judged anew."""
        if secret := [name for name, value in gated.args.items() if isinstance(value, SecretStr | SecretBytes)]:
            raise EditRefused(tuple(f"{name} is a secret: approve the call unchanged, or deny it" for name in secret))
        values = await validated(gated.ctx, gated.tool, args)
        return await self.judged(gated.ctx, gated.tool, values, gated.execute)

    async def check_edit(
        self, gated: GatedCall, request: ApprovalRequest, args: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Return edited arguments as they will run. Raises `EditRefused` if the tool or the policy rejects them."""
        return (await self._checked_edit(gated, request, args)).call.args

    async def with_edit(self, gated: GatedCall, request: ApprovalRequest, args: Mapping[str, Any]) -> ApprovalRequest:
        """Return the request as it would be asked with edited arguments. Raises `EditRefused`."""
        edited = await self._checked_edit(gated, request, args)
        return request.changed_to(args=edited.call.args, metadata=await edited.described())

    async def _checked_edit(self, gated: GatedCall, request: ApprovalRequest, args: Mapping[str, Any]) -> GatedCall:
        edited = await self.edited(gated, args)
        verdict, needed = edited.verdict, edited.verdict.requirement
        if verdict.effect is Effect.DENY:
            raise EditRefused((f"policy denies the edited call: {verdict.reason}",))
        if edited.sealed.unreadable:
            raise EditRefused(tuple(f"{what} cannot be shown" for what in edited.call.unreadable))
        if verdict.effect is Effect.ASK and needed.is_strict and needed != request.requirement:
            raise EditRefused((f"the edited call needs {who(needed)}: {verdict.reason}",))
        return edited
