"""List an agent's tools without running it, each with one sample call and what the gate would say to it.

Nothing is started: the tools of a server that lists them only once it runs are unknown, unless connecting is allowed.
A toolset's own code is asked as in a run: to list its tools, and whether the sample call needs approval.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from pydantic_ai import Agent, RunContext
from pydantic_ai.capabilities import NativeTool
from pydantic_ai.messages import ModelRequest
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.test import TestModel
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import (
    AbstractToolset,
    CombinedToolset,
    DynamicToolset,
    FilteredToolset,
    FunctionToolset,
    PreparedToolset,
    ToolsetTool,
)
from pydantic_ai.usage import RunUsage

from signoff.attached.checks import AttachedCheck, Check
from signoff.core.call import Call
from signoff.core.redact import redact_text
from signoff.core.verdict import Effect, Verdict
from signoff.errors import SignoffError
from signoff.gate.capability import Signoff
from signoff.gate.gate import Gate
from signoff.gate.offered_tools import TOOLSET as NATIVE
from signoff.gate.offered_tools import allows
from signoff.gate.tools import Hook, Origin, as_function, origin_of, schema_hash
from signoff.policy.engine import Policy
from signoff.policy.layers import Layers
from signoff.policy.match_result import in_one_line
from signoff.policy.policy_text import layers_of
from signoff.policy.reach import UNSURE, ToolView, reach_of
from signoff.policy.rule import Rule
from signoff.toolset_wrappers import parts_of
from signoff.toolsets.builtin.shell.shell_toolset import ShellToolset
from signoff.toolsets.builtin.sql.sql_toolset import SqlToolset
from signoff.toolsets.catalog import BuiltToolset
from signoff.toolsets.distinct_toolsets import name_of
from signoff.toolsets.own_policy import AttachedToolset
from signoff.workers.delegation_toolset import CREATE

Kind: TypeAlias = Literal["function", "mcp", "native", "external"]
"""Who executes it: this process, an MCP server, the model's provider, or the program that gets the run's output."""
NOT_STARTED = "a server that lists its tools once it runs"
PER_RUN = "its tools are decided in each run"
_SAMPLES: Mapping[str, str] = {
    "command": "make",
    "path": "example.txt",
    "source": "example.txt",
    "sql": "select 1",
    "target": "other.txt",
    "url": "https://example.com/",
}
"""What a sample call has for arguments of these names that take any text."""
_ANY_TEXT = "a"
"""What PydanticAI's `TestModel` writes for an argument that takes any text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedTool:
    """A tool that an agent has, with a sample call."""

    definition: ToolDefinition
    kind: Kind
    call: Call
    """The sample call; of a tool that the provider runs, nobody sees the arguments."""
    verdict: Verdict
    """What the gate says to the sample call; for a tool that the provider runs, whether it is offered at all."""
    which: str = ""
    """Tells tools of one name apart, if a provider runs several: `mcp_server:tickets`."""
    lets: tuple[Rule, ...] = ()
    """The rules that can let calls of it run unasked, whatever their arguments."""
    judge: ToolJudge | None = field(default=None, repr=False, compare=False)
    """Judges other calls of it; None if the provider runs it."""

    @property
    def name(self) -> str:
        return self.call.tool

    @property
    def toolset(self) -> str | None:
        return self.call.toolset

    @property
    def schema_hash(self) -> str:
        return schema_hash(self.definition, foreign=self.judge is None or self.judge.origin.is_foreign)

    @property
    def shown(self) -> str:
        """The name that people see."""
        return self.which or self.name

    @property
    def home(self) -> tuple[object, str]:
        """The toolset that has the tool, below all wrappers, and the tool's name there."""
        return self.judge.origin.steps[-1] if self.judge is not None else (None, self.name)

    @property
    def own(self) -> tuple[Policy, ...]:
        """The policies of its toolset, and of the toolset's entry in the catalog."""
        checks = self.judge.origin.checks if self.judge is not None else ()
        return tuple(policy for check in checks if (policy := _policy_of(check)) is not None)

    @property
    def all_names(self) -> frozenset[str]:
        """The tool's names in rules: those of the project, and those of its toolset."""
        steps = self.judge.origin.steps if self.judge is not None else ()
        return frozenset({self.name, *(name for _, name in steps)})


@dataclass(frozen=True, slots=True)
class ToolListing:
    """The tools found in an agent."""

    tools: list[ListedTool] = field(default_factory=list[ListedTool])
    unknown: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Toolsets whose tools are not all known, each with the reason."""


@dataclass(frozen=True, slots=True)
class ToolJudge:
    """Judges calls of one tool as the gate would in a run."""

    gate: Gate
    ctx: RunContext[Any]
    tool_def: ToolDefinition
    origin: Origin

    def read(self, args: Mapping[str, Any]) -> Call:
        return self.gate.reader.read(self.ctx, self.tool_def, args, self.origin)

    async def verdict(self, args: Mapping[str, Any]) -> Verdict:
        return await self.gate.verdict(self.ctx, self.tool_def, self.read(args), self.origin)


async def tools_of(agent: Agent[Any, Any], signoff: Signoff, *, connect: bool = False) -> ToolListing:
    """Return every tool of an agent as this gate judges it; the functions of its own that judge calls are left out.

    With `connect`, MCP servers are started to list their tools, and stopped again.
    """
    gate, found = replace(signoff.gate, judges=()), ToolListing()
    # The model is never called: toolsets only need one to be there.
    ctx = RunContext[Any](deps=None, model=TestModel(), usage=RunUsage(), agent=agent)
    for toolset in _parts(agent.toolsets):
        starts = is_server(toolset)
        if starts and not connect:
            found.unknown.append((name_of(toolset), NOT_STARTED))
            continue
        try:
            async with toolset if starts else nullcontext():
                listed = await CombinedToolset([toolset]).get_tools(ctx)  # as in an agent: a tool knows the way to it
                if _is_open(toolset, listed):
                    found.unknown.append((name_of(toolset), PER_RUN))
                found.tools.extend([await _listed(tool, gate, ctx) for tool in listed.values()])
        except Exception as error:
            told = str(error).replace("\n  ", "; ") if isinstance(error, SignoffError) else in_one_line(error)
            found.unknown.append((name_of(toolset), redact_text(told, secrets=gate.secrets)))
    await _add_native(found, agent, gate, ctx)
    return found


async def toolset_listing(
    built: BuiltToolset, layers: Iterable[Policy] = (), worker: str | None = None, *, connect: bool = False
) -> ToolListing:
    """Return the tools of a single toolset, as an agent with no other has them under these rules."""
    native = {tool.kind: built.policy for tool in built.native if built.policy is not None}
    gate = Signoff(Layers(tuple(layers)), native=native, secrets=built.secrets)
    toolsets = [built.toolset] if built.toolset is not None else []
    agent = Agent(name=worker, toolsets=toolsets, capabilities=[NativeTool(tool) for tool in built.native])
    return await tools_of(agent, gate, connect=connect)


def _parts(toolsets: Sequence[AbstractToolset[Any]]) -> Iterator[AbstractToolset[Any]]:
    """Yield toolsets one by one, so that one that cannot be listed hides no other."""
    for toolset in toolsets:
        if isinstance(toolset, CombinedToolset):
            yield from _parts(toolset.toolsets)
        else:
            yield toolset


def is_server(toolset: AbstractToolset[Any]) -> bool:
    """Return whether it contains an MCP server."""
    module = sys.modules.get("pydantic_ai.mcp")  # code that has an MCP toolset has imported it
    kind = getattr(module, "MCPToolset", None)
    return kind is not None and any(isinstance(one, kind) for one in parts_of(toolset))


def _is_open(toolset: AbstractToolset[Any], listed: Mapping[str, object]) -> bool:
    """Return whether a run may have other tools than those listed now."""
    for one in parts_of(toolset):
        if isinstance(one, DynamicToolset | FilteredToolset | PreparedToolset):
            return True
        if isinstance(one, FunctionToolset) and any(tool.prepare is not None for tool in one.tools.values()):
            return True
        if not listed and type(one).get_tools.__module__.partition(".")[0] not in ("pydantic_ai", "signoff"):
            return True
    return False


async def _listed(tool: ToolsetTool[Any], gate: Gate, ctx: RunContext[Any]) -> ListedTool:
    definition, origin = tool.tool_def, origin_of(tool)
    judge = ToolJudge(gate, ctx, as_function(definition), origin)
    call = judge.read(await _sample(judge.tool_def))
    return ListedTool(
        definition=definition,
        kind="mcp" if is_server(tool.toolset) else "external" if definition.kind == "external" else "function",
        call=call,
        verdict=await judge.verdict(call.args),
        lets=_lets(judge, call) if definition.kind != "unapproved" else (),
        judge=judge,
    )


async def _sample(definition: ToolDefinition) -> Mapping[str, Any]:
    """Return the arguments of a plain call: those that must be given, as `TestModel` writes them."""
    if definition.name == CREATE:
        return {"name": "helper", "file": "instructions: Help.\n"}
    offered = ModelRequestParameters(function_tools=[definition])
    try:
        answer = await TestModel().request([ModelRequest.user_text_prompt("")], None, offered)
        args = answer.tool_calls[0].args_as_dict()
    except Exception:  # a schema that it does not know how to fill
        return {}
    return {name: _SAMPLES.get(name, value) if value == _ANY_TEXT else value for name, value in args.items()}


def _lets(judge: ToolJudge, call: Call) -> tuple[Rule, ...]:
    """Return the rules of the policy, the toolset's entry and the toolset that can let calls of the tool run."""
    schema, (home, _) = judge.tool_def.parameters_json_schema, judge.origin.steps[-1]
    # Labels that other code declares can depend on the arguments; so do those of shells and databases.
    is_fixed = all(map(_is_ours, judge.origin.capability_labels)) and not isinstance(home, ShellToolset | SqlToolset)
    view = ToolView(
        tool=call.tool,
        toolset=call.toolset,
        worker=call.worker or UNSURE,
        labels=call.labels if is_fixed else UNSURE,
        claimed=call.claimed,
        bare=not schema.get("properties") and schema.get("additionalProperties") is False,
    )
    own = [(policy, replace(view, tool=check.tool)) for check in judge.origin.checks if (policy := _policy_of(check))]
    return reach_of([*((policy, view) for policy in layers_of(judge.gate.policy)), *own]).lets


def _is_ours(hook: Hook) -> bool:
    return str(getattr(getattr(hook, "func", hook), "__module__", "")).partition(".")[0] == "signoff"


def _policy_of(check: Check) -> Policy | None:
    """Return the policy behind a check; None if its own code decides."""
    if isinstance(check, AttachedCheck):
        return check.layer.policy
    owner = getattr(check.method, "__self__", None)
    return owner.policy if isinstance(owner, AttachedToolset) else None


async def _add_native(found: ToolListing, agent: Agent[Any, Any], gate: Gate, ctx: RunContext[Any]) -> None:
    for tool in agent.root_capability.get_native_tools():
        kind = getattr(tool, "kind", None)
        if kind == "tool_search":  # PydanticAI's own search for the agent's tools; it does nothing else
            continue
        if not isinstance(kind, str):  # a function makes it for each run
            found.unknown.append((NATIVE, "which tool the provider is offered is decided in each run"))
            continue
        unique = str(getattr(tool, "unique_id", kind))
        if await allows(gate, ctx, kind, unique):
            verdict = Verdict(effect=Effect.ALLOW, reason="it is offered to the model, whose provider runs it")
        else:
            verdict = Verdict(effect=Effect.DENY, reason="it is not offered to the model")
        found.tools.append(
            ListedTool(
                definition=ToolDefinition(name=kind, description="run by the model's provider"),
                kind="native",
                call=Call(tool=kind, toolset=NATIVE),
                verdict=verdict,
                which=unique if unique != kind else "",
            )
        )
