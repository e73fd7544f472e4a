"""How a run reads its calls: with their facts, a verdict, and sealed for keeping."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import SecretBytes, SecretStr
from pydantic_ai import RunContext
from pydantic_ai.toolsets import ToolsetTool

from signoff.core.call import Veiled
from signoff.core.quorum import who
from signoff.core.request import ApprovalRequest
from signoff.core.verdict import Effect, Verdict
from signoff.errors import EditRefused
from signoff.gate.calls import Owner, Places, Schemas, owner_of
from signoff.gate.edits import validated
from signoff.gate.faithful import unfaithful
from signoff.gate.gate import Gate
from signoff.gate.passage import Passage

UNJUDGED = Verdict(effect=Effect.ASK, reason="not judged yet")
"""The verdict of a call for which somebody has to be waited for."""


@dataclass(slots=True)
class Reading:
    """Reads and judges the calls of one run; remembers what is the same for all calls of a tool."""

    gate: Gate
    places: Places = field(default_factory=Places)
    _schemas: Schemas = field(default_factory=Schemas)
    _owners: dict[str, tuple[ToolsetTool[Any], Owner]] = field(
        default_factory=dict[str, "tuple[ToolsetTool[Any], Owner]"]
    )

    async def judged(
        self, ctx: RunContext[Any], tool: ToolsetTool[Any], args: dict[str, Any], execute: Callable[..., Awaitable[Any]]
    ) -> Passage:
        """The call with everybody's verdict on it."""
        passage = self.read(ctx, tool, args, execute)
        if passage.verdict is UNJUDGED:
            passage.verdict = await self.gate.verdict(ctx, tool.tool_def, passage.call, passage.owner)
        return passage

    def read(
        self, ctx: RunContext[Any], tool: ToolsetTool[Any], args: dict[str, Any], execute: Callable[..., Awaitable[Any]]
    ) -> Passage:
        """The call, judged where that takes no waiting: for most calls, all of it."""
        tool_def = tool.tool_def
        owner = self._owner(tool)
        call = self.gate.reader.read(ctx, tool_def, args, owner)
        if call.args is not args and (lost := unfaithful(ctx, tool, args, call)):
            call = call.changed(unreadable=(*call.unreadable, *lost))
        verdict = self.gate.plain_verdict(tool_def, call, owner)
        return Passage(ctx, tool, owner, args, execute, call, verdict or UNJUDGED)

    def _owner(self, tool: ToolsetTool[Any]) -> Owner:
        """Where the tool comes from. Of one name there may be another in the next step, from another toolset."""
        known, owner = self._owners.get(tool.tool_def.name, (None, None))
        if owner is None or known is not tool:
            owner = owner_of(tool)
            self._owners[tool.tool_def.name] = (tool, owner)
        return owner

    def sealed(self, passage: Passage) -> Passage:
        """The call as it is asked about and kept: with its run, the tool's schema, and arguments nobody can change."""
        call, ctx = passage.call, passage.ctx
        if call.schema_hash:
            return passage
        sealed = call.changed(
            args=_copied(call.args),
            run_id=self.places.of(ctx.messages, call.call_id, ctx.run_id or ""),
            schema_hash=self._schemas.of(passage.tool.tool_def, passage.owner),
        )
        return replace(passage, call=sealed)

    async def edited(self, passage: Passage, args: Mapping[str, Any]) -> Passage:
        """The same call with a person's arguments, read and judged anew."""
        if veiled := [name for name, value in passage.args.items() if isinstance(value, SecretStr | SecretBytes)]:
            raise EditRefused(
                tuple(f"{name} is a secret; such a call is approved as it is, or denied" for name in veiled)
            )
        values = await validated(passage.ctx, passage.tool, args)
        return self.sealed(await self.judged(passage.ctx, passage.tool, values, passage.execute))

    async def check_edit(
        self, passage: Passage, request: ApprovalRequest, args: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Edited arguments as they will run; raises `EditRefused` if the tool or the policy does not take them so."""
        edited = await self.edited(passage, args)
        verdict, needed = edited.verdict, edited.verdict.requirement
        if verdict.effect is Effect.DENY:
            raise EditRefused((f"policy denies the edited call: {verdict.reason}",))
        if edited.call.unreadable:
            raise EditRefused(tuple(f"{what} cannot be shown" for what in edited.call.unreadable))
        if verdict.effect is Effect.ASK and needed.is_strict and needed != request.requirement:
            raise EditRefused((f"the edited call needs {who(needed)}: {verdict.reason}",))
        return edited.call.args


def _copied(args: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments that nobody else can change; a veil stays one."""
    copies = json.loads(json.dumps(args))
    return {name: Veiled(copies[name]) if isinstance(value, Veiled) else copies[name] for name, value in args.items()}
