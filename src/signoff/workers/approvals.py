"""Questions that a toolset's own code asks people: `context.approvals`, for tools of a worker."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from signoff.core.decision import ApprovalDecision, Remember
from signoff.core.people import UNNAMED, Actor, ActorKind
from signoff.core.verdict import Verdict
from signoff.errors import WrongUse
from signoff.gate.gated_calls import GatedCall, running_call
from signoff.gate.refusal_words import POLICY, SIGNOFF
from signoff.gate.single_call import call_tool, recall
from signoff.policy.engine import Policy
from signoff.policy.phrases import shown
from signoff.policy.strictest_verdict import strictest
from signoff.ports import judging
from signoff.workers.bounds import Bounds
from signoff.workers.limits import account_of

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_NO_PERSON = frozenset({POLICY, SIGNOFF, "timeout"})
"""Names in a refusal's `by` that are no person."""
_ANY_ARGS = SchemaValidator(core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema()))


@dataclass(slots=True)
class ToolsetApprovals:
    """Implements `signoff.toolsets.context.Approvals` for the toolsets of one worker."""

    policies: dict[str, list[Policy]] = field(default_factory=dict[str, "list[Policy]"])
    """The rules of each toolset by its name, which apply to its questions too. Known once the toolsets are built."""

    def rules_of(self, bounds: Bounds) -> None:
        """Take over the rules of the toolsets, once those are built."""
        for layer in bounds.layers:
            if layer.toolset:
                self.policies.setdefault(layer.toolset, []).append(layer.policy)

    async def ask(
        self, ctx: RunContext[Any], question: str, args: Mapping[str, Any], *, summary: str = ""
    ) -> ApprovalDecision:
        asked = self._question(ctx, question, args, summary)
        with account_of(ctx).resting():  # waiting for a person does not count as the worker's time
            answered = await call_tool(ctx, asked, question, args)
        return _decision(_unnoticed(answered.content) if answered.ran else _refusal(answered.content))

    async def remembered(self, ctx: RunContext[Any], question: str, args: Mapping[str, Any]) -> ApprovalDecision | None:
        grant = await recall(ctx, self._question(ctx, question, args, ""), question, args)
        if grant is None:
            return None
        by = Actor(name=grant.by) if grant.by else None
        return ApprovalDecision(approved=grant.approved, note=grant.note, by=by, remember=Remember.ALWAYS)

    def _question(self, ctx: RunContext[Any], question: str, args: Mapping[str, Any], summary: str) -> QuestionTool:
        call = running_call()
        if not isinstance(call, GatedCall):
            raise WrongUse("ask from inside a tool of the toolset: this code does not run in a tool call")
        if not _NAME.fullmatch(question):
            raise WrongUse(f"bad name {shown(question)} for a question: use letters, digits, `_` and `-`")
        tools = ctx.tool_manager.tools if ctx.tool_manager is not None else None
        if question in (tools or {}):
            raise WrongUse(f"{shown(question)} is a tool of this run: give the question another name")
        name = call.origin.toolset_name or ""
        return QuestionTool(question, tuple(args), summary, name, tuple(self.policies.get(name, ())))


@dataclass(eq=False)
class QuestionTool(AbstractToolset[Any]):
    """One question as a tool. If it runs, the question was approved."""

    name: str
    takes: tuple[str, ...]
    """The names of its arguments."""
    summary: str
    catalog_name: str
    """Name of the toolset that asks: rules about it apply to its questions."""
    rules: tuple[Policy, ...]

    @property
    def id(self) -> str:
        return self.catalog_name or self.name

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {name: {} for name in self.takes},
            "required": list(self.takes),
            "additionalProperties": False,
        }
        definition = ToolDefinition(
            name=self.name, description="Asked by a toolset.", parameters_json_schema=schema, sequential=True
        )
        tool = ToolsetTool[Any](toolset=self, tool_def=definition, max_retries=0, args_validator=_ANY_ARGS)
        return {self.name: tool}

    def needs_approval(self, name: str, args: Mapping[str, Any], ctx: Any) -> Verdict | None:
        """Return what the rules of the asking toolset say. If they say nothing, somebody is asked."""
        call = judging.get()
        if call is None:
            return None
        return strictest([found for one in self.rules if (found := one.judge_layer(call)) is not None])

    def describe_approval(self, name: str, args: Mapping[str, Any], ctx: Any) -> Mapping[str, Any]:
        return {"summary": self.summary} if self.summary else {}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Return the approval, and who gave it."""
        call = running_call()
        assert isinstance(call, GatedCall), "the gate let it through"
        settled = call.request.decision if call.request is not None else None
        yes: dict[str, Any] = {"approved": True, "by": POLICY, "kind": ActorKind.MODE.value, "note": ""}
        if settled is not None and settled.by is not None:
            edited = dict(settled.edited_args) if settled.edited_args is not None else None
            yes |= {"by": settled.by.name, "kind": settled.by.kind.value, "note": settled.note, "edited": edited}
        elif call.grant is not None:
            yes |= {"by": call.grant.by, "kind": ActorKind.PERSON.value, "note": call.grant.note}
        return yes


def _unnoticed(content: Any) -> Mapping[str, Any]:
    """Return the approval without the notice for a model that its arguments were edited."""
    return content["result"] if "notice" in content else content


def _decision(told: Mapping[str, Any]) -> ApprovalDecision:
    by = Actor(name=told["by"], kind=ActorKind(told["kind"])) if told["by"] else None
    edited: Mapping[str, Any] | None = told.get("edited")
    return ApprovalDecision(approved=told["approved"], note=told["note"], edited_args=edited, by=by)


def _refusal(content: Any) -> Mapping[str, Any]:
    """Convert what a model would be told of a denial to a decision."""
    try:
        payload = json.loads(content)
        by, note = str(payload["by"]), str(payload["reason"])
    except (TypeError, ValueError, LookupError):
        by, note = "", str(content)
    return {"approved": False, "by": by, "kind": _kind_of(by), "note": note}


def _kind_of(by: str) -> str:
    """Return the kind of an actor that a payload names, as `Actor.known_as` does."""
    if by == UNNAMED.name:
        return str(UNNAMED.kind)
    return by if by in set(ActorKind) else "mode" if by in _NO_PERSON else "person"
