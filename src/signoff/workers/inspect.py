"""Inspect what an agent could call, without running it: its tools, and what each of their own policies can say.

Nothing is started: the tools of a server that lists them only once it runs are unknown, unless connecting is allowed.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from types import SimpleNamespace
from typing import Any, Literal, TypeAlias

from pydantic_ai import Agent, RunContext
from pydantic_ai.models.test import TestModel
from pydantic_ai.toolsets import AbstractToolset, CombinedToolset, ToolsetTool
from pydantic_ai.usage import RunUsage

from signoff.attached.checks import AttachedCheck, Check
from signoff.attached.checks import OwnCheck as OwnMethod
from signoff.core.call import Call
from signoff.core.redact import redact_text
from signoff.core.verdict import Effect, Verdict
from signoff.errors import Place, SignoffError
from signoff.gate.tools import Hook, Origin, origin_of, schema_hash
from signoff.links import looked_up
from signoff.policy.builtin import WRITE_TOOLS
from signoff.policy.call_paths import Facts
from signoff.policy.engine import Policy
from signoff.policy.layers import Layers
from signoff.policy.match import Match
from signoff.policy.match_result import MatchResult, in_one_line
from signoff.policy.phrases import shown
from signoff.policy.reach import UNSURE, Reach, ToolView, Unsure, reach_of
from signoff.policy.rule import Rule
from signoff.policy.shell.command_facts import LABEL_OF
from signoff.policy.strictest_verdict import strictest
from signoff.toolsets.builtin.files.file_toolset import FilesToolset
from signoff.toolsets.builtin.shell.shell_toolset import ShellToolset
from signoff.toolsets.builtin.sql.sql_toolset import SqlToolset
from signoff.toolsets.distinct_toolsets import name_of
from signoff.toolsets.own_policy import AttachedToolset
from signoff.workers.delegation_toolset import CALL, CREATE, TOOLSET, DelegationToolset
from signoff.workers.listing import is_server, listing_of

Kind: TypeAlias = Literal["function", "mcp", "native", "external"]
"""Who executes it: this process, an MCP server, the model's provider, or the program that gets the run's output."""
NATIVE = "native"
"""The toolset name of provider-executed tools in rules."""
NOT_STARTED = "a server that lists its tools once it runs"
PER_RUN = "its tools are decided in each run"


@dataclass(frozen=True, slots=True)
class UnknownCheck:
    """Stands for a toolset's own code that decides whether a call needs approval: its answer cannot be known."""

    text: str

    def find(self, facts: Facts) -> MatchResult:
        return MatchResult.unknown(self.text)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTool:
    """A tool that an agent has, with everything that is known about its calls beforehand."""

    name: str
    toolset: str | None
    kind: Kind = "function"
    which: str = ""
    """Tells tools of one name apart, if a provider runs several: `mcp_server:tickets`."""
    labels: tuple[frozenset[str], ...] | Unsure = (frozenset(),)
    claimed: frozenset[str] = frozenset()
    bare: bool = False
    """Whether it takes no arguments at all."""
    description: str = ""
    arguments: tuple[str, ...] = ()
    required: frozenset[str] = frozenset()
    """The arguments that must be given."""
    schema_hash: str = ""
    own: tuple[tuple[Policy, ToolView], ...] = ()
    """What the tool and its toolset say themselves: their policies, each with the call as it is seen there."""
    owner: Origin | None = field(default=None, repr=False, compare=False)

    def reach(self, policies: Iterable[Policy], worker: tuple[str, ...], *, nested: bool = False) -> Reach:
        """Return what can happen to its calls under these policies, by a worker that others may call if `nested`.

        An empty `worker` means any: then a rule about one may match or not.
        """
        subject = ToolView(
            tool=self.name,
            toolset=self.toolset,
            worker=worker or UNSURE,
            nested=nested,
            labels=self.labels,
            claimed=self.claimed,
            bare=self.bare,
            unseen=self.kind == "native",
        )
        found = reach_of([*((policy, subject) for policy in policies), *self.own])
        return found if self.kind != "native" else _offered(found)

    def judge(self, policies: Iterable[Policy], worker: tuple[str, ...], args: Mapping[str, Any]) -> Verdict | None:
        """Return the verdict on one call as it would be made now; None if its toolset has code of its own to ask."""
        owner = self.owner
        if owner is None or not all(map(_is_ours, (*_own_methods(owner), *owner.capability_labels))):
            return None
        layers = Layers(tuple(policies))
        ctx: Any = SimpleNamespace(agent=SimpleNamespace(name=worker[-1]), deps=None)  # all that signoff's own uses
        labels = frozenset[str]().union(*(hook(args, ctx) for hook in owner.capability_labels))
        call = Call(tool=self.name, args=args, toolset=self.toolset, worker=worker, labels=labels, claimed=self.claimed)
        call = call.changed(start=owner.start)
        call = looked_up(call, layers, owner.start or layers.root or os.sep)
        said = [layers.judge_layer(call), *(_verdict(check, args, ctx) for check in owner.checks)]
        return strictest(one for one in said if one is not None) or layers.silence(call)

    @property
    def shown(self) -> str:
        """The name that people see."""
        return self.which or self.name

    @property
    def home(self) -> object:
        """The toolset that has the tool, below all wrappers."""
        own = _own_methods(self.owner) if self.owner is not None else ()
        return getattr(own[-1], "__self__", None) if own else None

    @property
    def own_name(self) -> str:
        """The tool's name in that toolset."""
        checks = self.owner.checks if self.owner is not None else ()
        return next((check.tool for check in reversed(checks) if isinstance(check, OwnMethod)), self.name)

    @property
    def all_names(self) -> frozenset[str]:
        """The tool's names in rules: those of the project, and those of its toolset."""
        return frozenset({self.name, *(subject.tool for _, subject in self.own)})

    @property
    def all_labels(self) -> tuple[str, ...]:
        """Every label that is known for its calls, trusted or claimed."""
        sets = self.labels if self.labels is not UNSURE else ()
        return tuple(sorted(frozenset[str]().union(*sets) | self.claimed))


@dataclass(frozen=True, slots=True)
class AgentParts:
    """The tools found in an agent."""

    tools: list[FoundTool] = field(default_factory=list[FoundTool])
    unknown: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Toolsets whose tools could not be listed, each with the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InspectedAgent:
    """An agent to inspect, and what else is known about it."""

    agent: Agent[Any, Any]
    native: Mapping[str, Policy | Sequence[Policy]] = field(default_factory=dict[str, "Policy | Sequence[Policy]"])
    """The policies for provider-executed tools, by their unique id or kind."""
    secrets: tuple[str, ...] = ()
    """Values that must not be shown, not even in an error."""


async def tools_of(look: InspectedAgent, *, connect: bool = False) -> AgentParts:
    """Return every tool of an agent. With `connect`, MCP servers are started and stopped again to list their tools."""
    agent, found = look.agent, AgentParts()
    # The model is never called: toolsets only need one to be there.
    ctx = RunContext[Any](deps=None, model=TestModel(), usage=RunUsage(), agent=agent)
    for toolset in _parts(agent.toolsets):
        try:
            listing = await listing_of(toolset, ctx, connect=connect)
        except Exception as error:
            told = str(error).replace("\n  ", "; ") if isinstance(error, SignoffError) else in_one_line(error)
            found.unknown.append((name_of(toolset), redact_text(told, secrets=look.secrets)))
            continue
        if listing is None:
            found.unknown.append((name_of(toolset), NOT_STARTED))
            continue
        if listing.by_run:
            found.unknown.append((name_of(toolset), PER_RUN))
        found.tools.extend(_tool(tool, ctx) for tool in listing.tools)
    _add_native(found, agent, look.native)
    return found


def _parts(toolsets: Sequence[AbstractToolset[Any]]) -> Iterator[AbstractToolset[Any]]:
    """Yield toolsets one by one, so that one that cannot be listed hides no other."""
    for toolset in toolsets:
        if isinstance(toolset, CombinedToolset):
            yield from _parts(toolset.toolsets)
        else:
            yield toolset


def _tool(tool: ToolsetTool[Any], ctx: RunContext[Any]) -> FoundTool:
    definition, owner = tool.tool_def, origin_of(tool)
    schema = definition.parameters_json_schema
    kind: Kind = "mcp" if is_server(tool.toolset) else "external" if definition.kind == "external" else "function"
    labels = _labels(owner, ctx, owner.labels)
    worker = ctx.agent.name if ctx.agent is not None else None
    found = FoundTool(
        name=definition.name,
        toolset=owner.toolset_name,
        kind=kind,
        labels=labels,
        claimed=_claimed(owner, ctx),
        bare=_takes_nothing(schema),
        description=definition.description or "",
        arguments=tuple(schema.get("properties", ())),
        required=frozenset(schema.get("required", ())),
        schema_hash=schema_hash(definition, foreign=owner.is_foreign),
        owner=owner,
    )
    own = [_own_layer(check, found, owner, (worker,) if worker else UNSURE) for check in owner.checks]
    if definition.kind == "unapproved":
        own.append((_ASKS_ALWAYS, ToolView(tool=definition.name)))
    return replace(found, own=tuple(own))


def _takes_nothing(schema: Mapping[str, Any]) -> bool:
    return not schema.get("properties") and schema.get("additionalProperties") is False


def _labels(owner: Origin, ctx: RunContext[Any], declared: Iterable[str]) -> tuple[frozenset[str], ...] | Unsure:
    """Return the sets of labels that calls can have, as far as the tool alone decides them."""
    sets = [frozenset(declared)]
    for hook in owner.capability_labels:
        said = _declared_by(hook, ctx)
        if said is UNSURE:
            return UNSURE
        sets = [one | other for one in sets for other in said]
    return tuple(dict.fromkeys(sets))


def _declared_by(hook: Hook, ctx: RunContext[Any]) -> tuple[frozenset[str], ...] | Unsure:
    declarer, tool = _declarer(hook)
    if isinstance(declarer, FilesToolset):
        return _WRITES if tool in WRITE_TOOLS else (frozenset({"fs.read"}),)
    if isinstance(declarer, ShellToolset):
        return _COMMANDS
    if isinstance(declarer, SqlToolset):
        return frozenset({"data.read"}), frozenset({"data.write"})
    if _is_ours(hook) and not isinstance(declarer, AttachedToolset):  # it depends on the tool's name alone
        return (frozenset(hook({}, ctx)),)
    return UNSURE


_WRITES = (frozenset({"fs.write"}), frozenset({"fs.write", "proc.exec"}))
_COMMANDS = (
    frozenset({"fs.read"}),
    *(
        frozenset({"fs.read", "proc.exec", *more})
        for number in range(len(set(LABEL_OF.values())) + 1)
        for more in combinations(sorted(set(LABEL_OF.values())), number)
    ),
    frozenset({"proc.exec"}),
)
"""The labels a shell command can have: it only reads, or it starts something, with everything that may do."""


def _claimed(owner: Origin, ctx: RunContext[Any]) -> frozenset[str]:
    """Return the labels claimed for the tool. A claim that cannot be read makes its calls ask, so none is assumed."""
    try:
        return frozenset[str]().union(*(hook({}, ctx) for hook in owner.claimed_labels))
    except Exception:
        return frozenset()


def _own_methods(owner: Origin) -> tuple[Hook, ...]:
    """Return the toolsets' own methods that are asked about the tool's calls."""
    return tuple(check.method for check in owner.checks if isinstance(check, OwnMethod))


def _verdict(check: Check, args: Mapping[str, Any], ctx: Any) -> Verdict | None:
    """Return the verdict of a policy, or of a method of signoff's own."""
    return check.verdict(args, ctx) if isinstance(check, AttachedCheck) else check.method(check.tool, args, ctx)


def _own_layer(
    check: Check, tool: FoundTool, owner: Origin, worker: tuple[str, ...] | Unsure
) -> tuple[Policy, ToolView]:
    """Return what one toolset on the way says about the tool's calls: a policy, or that only its code knows."""
    name = check.tool
    if isinstance(check, AttachedCheck):
        # The outermost toolset gets all labels, one further down fewer.
        labels = tool.labels if len(check.below) == len(owner.steps) or not owner.capability_labels else UNSURE
        toolset = check.layer.name or UNSURE
        return check.layer.policy, ToolView(
            tool=name, toolset=toolset, worker=worker, labels=labels, claimed=tool.claimed
        )
    declarer = getattr(check.method, "__self__", None)
    if isinstance(declarer, DelegationToolset):
        return _DELEGATION, ToolView(tool=name)
    if isinstance(declarer, AttachedToolset) and _is_ours(check.method):  # it depends on the call alone
        return declarer.policy, ToolView(tool=name, toolset=declarer.policy.name, worker=(), bare=tool.bare)
    return _own_check(check.method), ToolView(tool=name)


def _declarer(hook: Hook) -> tuple[object, str]:
    """Return the object a hook belongs to, and the tool's name there."""
    method, args = getattr(hook, "func", hook), getattr(hook, "args", ("",))
    return getattr(method, "__self__", None), str(args[0])


def _is_ours(hook: Hook) -> bool:
    """Return whether the code behind a hook is signoff's own, which applies the policy it carries or is stricter."""
    return str(getattr(getattr(hook, "func", hook), "__module__", "")).partition(".")[0] == "signoff"


def _own_check(hook: Hook) -> Policy:
    """Return a policy that may allow, in place of code that may."""
    method = getattr(hook, "func", hook)
    code = getattr(inspect.unwrap(method), "__code__", None)
    place = Place(code.co_filename, code.co_firstlineno) if code is not None else Place("")
    name = f"{getattr(method, '__module__', '?')}:{getattr(method, '__qualname__', repr(method))}"
    match = Match(conditions=(UnknownCheck(f"that {shown(name, most=200)} lets pass"),))
    return Policy(rules=(Rule(id="toolset", effect=Effect.ALLOW, matches=(match,), place=place),), name="toolset")


_DELEGATION = Policy.from_rules([{"allow": CALL}, {"ask": CREATE}], file=f"<{TOOLSET}>", name=TOOLSET)
"""What `DelegationToolset` says, as rules: calling a worker does nothing by itself, creating one is asked about."""
_ASKS_ALWAYS = Policy(rules=(Rule(id="tool", effect=Effect.ASK, matches=(Match(),)),), name="tool")
"""The policy of a tool that was made with `requires_approval`."""


def _add_native(found: AgentParts, agent: Agent[Any, Any], policies: Mapping[str, Policy | Sequence[Policy]]) -> None:
    for tool in agent.root_capability.get_native_tools():
        kind = getattr(tool, "kind", None)
        if kind == "tool_search":  # PydanticAI's own search for the agent's tools; it does nothing else
            continue
        if not isinstance(kind, str):  # a function makes it for each run
            found.unknown.append((NATIVE, "which tool the provider is offered is decided in each run"))
            continue
        unique = str(getattr(tool, "unique_id", kind))
        given = (policies.get(name, ()) for name in dict.fromkeys((unique, kind)))
        own = [one for some in given for one in ((some,) if isinstance(some, Policy) else some)]
        subject = ToolView(tool=kind, toolset=NATIVE, unseen=True)
        layers = tuple((one, subject) for one in own)
        which = unique if unique != kind else ""
        about = "run by the model's provider"
        found.tools.append(
            FoundTool(name=kind, toolset=NATIVE, kind="native", which=which, description=about, own=layers)
        )


def _offered(found: Reach) -> Reach:
    """Treat an ask as a deny: a provider-executed tool is either offered to the model or not."""
    return found if found.effect in ("allow", "conditional") else replace(found, effect="deny", unanswered=())
