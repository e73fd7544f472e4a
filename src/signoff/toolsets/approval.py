"""Policy for a plain PydanticAI toolset, attached in one of three ways that mean the same.

`with_approval(toolset, policy)` for a toolset, `Registration` for one that is made later, `@approval_tool` for one tool
of a `FunctionToolset`. The gate asks what is attached; without a gate it is kept to by PydanticAI's own deferred
approvals. What no rule speaks about is asked about, unless a rule of the project's answers.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any, TypeAlias, TypeVar

from pydantic_ai import ApprovalRequired, RunContext, Tool
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset, ToolsetTool, WrapperToolset

from signoff.core.call import Call
from signoff.core.verdict import Effect, Verdict
from signoff.errors import WrongUse
from signoff.links import followed
from signoff.policy.engine import Policy
from signoff.policy.strictest import strictest
from signoff.ports import Passed, judging, passed
from signoff.toolsets.attached import held, is_answered, let_through, may_run
from signoff.toolsets.hooks import described, labels_by, said
from signoff.wrapped import way_down

Rules: TypeAlias = "Policy | str | Sequence[Mapping[str, Any]] | None"
"""A `Policy`, rules as in a file, one of `allow`, `ask` and `deny` for every call, or None: nothing attached."""
Labels: TypeAlias = "Mapping[str, Iterable[str] | str]"
"""Capability labels by tool name or glob."""
F = TypeVar("F", bound=Callable[..., Any])


def with_approval(
    toolset: AbstractToolset[Any], policy: Rules = None, *, name: str | None = None, labels: Labels | None = None
) -> ApprovalToolset:
    """The toolset with a policy for its calls. Rules know it by `name`, or by its own id.

    `labels` say what its tools do, by name or glob: `{"list_*": "data.read"}`.
    """
    known_as = name if name is not None else toolset.id
    # A policy object of its own: who was heard is told by the object, and one that is attached twice is asked twice.
    own = copy.copy(policy_of(policy, known_as or "toolset"))
    return ApprovalToolset(toolset, own, known_as, _labels(labels or {}))


def policy_of(rules: Rules, name: str) -> Policy:
    """Rules in any of the accepted forms as a policy."""
    if isinstance(rules, Policy):
        return rules
    if rules is None:
        return Policy(rules=(), file=f"<{name}>", name=name)
    if isinstance(rules, str):
        if rules not in tuple(Effect):
            raise WrongUse(f"{rules!r} is no policy: write allow, ask, deny, or a list of rules")
        rules = [{rules: "*"}]
    return Policy.from_rules(rules, file=f"<{name}>", name=name, root=os.path.realpath(os.curdir))


def _labels(labels: Labels) -> dict[str, tuple[str, ...]]:
    return {tools: (given,) if isinstance(given, str) else tuple(given) for tools, given in labels.items()}


@dataclass
class ApprovalToolset(WrapperToolset[Any]):
    """A toolset with a policy for its calls, and labels for its tools. Made by `with_approval`."""

    policy: Policy
    catalog_name: str | None = None
    """What rules (`toolset:`) and cards call it."""
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, "tuple[str, ...]"])
    listed: dict[str, ToolsetTool[Any]] = field(default_factory=dict[str, ToolsetTool[Any]], repr=False, compare=False)
    """The tools as the wrapped toolset listed them last."""

    @property
    def id(self) -> str | None:
        return self.catalog_name or self.wrapped.id

    @property
    def label(self) -> str:
        return f"toolset {self.catalog_name!r}" if self.catalog_name else self.wrapped.label

    @property
    def tool_name_conflict_hint(self) -> str:
        return f"Give one of them a `prefix` in signoff.yaml: {self.catalog_name or 'NAME'}: {{prefix: my, …}}."

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        tools = await self.wrapped.get_tools(ctx)
        self.listed.update(tools)
        # A tool names the toolset it comes from: this one, from which the gate goes down.
        return {name: replace(tool, toolset=replace(self, wrapped=self._below(name))) for name, tool in tools.items()}

    def _below(self, name: str) -> AbstractToolset[Any]:
        """Where the way to a tool goes on: what is wrapped, or where a toolset is made for each run, what was made."""
        tool = self.listed.get(name)
        if tool is None or any(one is tool.toolset for one, _ in way_down(self.wrapped, name, tool)):
            return self.wrapped
        return tool.toolset

    # what it declares about its calls

    def capability_labels(self, name: str, args: Mapping[str, Any], ctx: Any) -> tuple[str, ...]:
        """The labels that were attached to the tool."""
        return tuple(label for tools, labels in self.labels.items() if fnmatchcase(name, tools) for label in labels)

    def needs_approval(self, name: str, args: Mapping[str, Any], ctx: Any) -> Verdict | None:
        """What the attached rules say; where none speaks, an ask that gives way to the project's own rules.

        Without any rule it has no say, and whatever nobody has a say about is asked about.
        """
        return _verdict(self.policy, self.call_of(name, args, ctx)) if self.policy.rules else None

    def call_of(self, name: str, args: Mapping[str, Any], ctx: Any) -> Call:
        """The call as the attached policy sees it, with every label that anything below declares."""
        tool, below = self.listed.get(name), self._below(name)
        metadata = (tool.tool_def.metadata or {}) if tool is not None else {}
        declared = metadata.get("labels") or ()
        labels = {
            *self.capability_labels(name, args, ctx),
            *([declared] if isinstance(declared, str) else declared),
            *labels_by("capability_labels", below, name, args, ctx, tool),
        }
        claimed = labels_by("claimed_labels", below, name, args, ctx, tool)
        return _call(self.policy, name, args, ctx, self.catalog_name, labels, claimed, self._starts_from())

    def _starts_from(self) -> str:
        """The folder that relative paths in calls start from, where what is wrapped says so."""
        inner: AbstractToolset[Any] = self
        while isinstance(inner, WrapperToolset):
            inner = inner.wrapped
        found = getattr(inner, "starts_from", "")
        return found if isinstance(found, str) else ""

    # without a gate

    def _steps(self, name: str, tool: ToolsetTool[Any]) -> list[tuple[AbstractToolset[Any], str]]:
        """Everything a call goes through from here down, each with the tool's name there."""
        steps = list(way_down(self, name, tool))
        below = self._below(name)
        return steps if below is self.wrapped else [*steps, *way_down(below, name, self.listed[name])]

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """As for any toolset; where no gate has asked it about the call, what is attached here and below holds it."""
        steps = self._steps(name, tool)
        if any(may_run(ctx, called, tool_args, self.policy) for _, called in steps):
            return await super().call_tool(name, tool_args, ctx, tool)
        # Whoever let it through further out knows it by its innermost name that can be seen from there.
        known_as = next((called for _, called in steps if let_through(ctx, called, tool_args)), steps[-1][1])
        verdicts = [verdict for one, called in steps for verdict in await said(one, called, tool_args, ctx)]
        await _hold(strictest(verdicts), known_as, steps, tool_args, ctx)
        before = let_through(ctx, known_as, tool_args)
        heard = frozenset(map(id, _policies(steps))) | (before.heard if before is not None else frozenset[int]())
        answered = is_answered(ctx, known_as, tool_args)
        token = passed.set(Passed(ctx.run_id, ctx.tool_call_id, steps[-1][1], tool_args, answered, heard))
        try:
            return await super().call_tool(name, tool_args, ctx, tool)
        finally:
            passed.reset(token)


def _policies(steps: Iterable[tuple[AbstractToolset[Any], str]]) -> Iterator[object]:
    """What the gate, too, counts as heard once it has asked these toolsets."""
    for one, _ in steps:
        yield getattr(one, "policy", None)
        yield from getattr(one, "policies", ())


async def _hold(
    verdict: Verdict | None,
    name: str,
    steps: Sequence[tuple[AbstractToolset[Any], str]],
    args: dict[str, Any],
    ctx: RunContext[Any],
) -> None:
    """Raise what keeps a call from running, unless it is allowed or a person has answered."""
    match held(verdict, ctx, name, args):
        case Effect.ALLOW:
            return
        case Effect.DENY:
            raise ToolFailed(verdict.reason if verdict is not None else "")
        case Effect.ASK:
            words: dict[str, Any] = {"reason": verdict.reason if verdict is not None else ""}
            for one, called in reversed(steps):
                words.update(await described(one, called, args, ctx))
            raise ApprovalRequired(metadata=words)


def _verdict(policy: Policy, call: Call) -> Verdict:
    return policy.judge_layer(call) or replace(policy.judge(call), yields=True)


def _call(
    policy: Policy,
    name: str,
    args: Mapping[str, Any],
    ctx: Any,
    toolset: str | None,
    labels: Iterable[str],
    claimed: Iterable[str] = (),
    start: str = "",
) -> Call:
    agent, seen = getattr(ctx, "agent", None), judging.get()
    worker = (agent.name,) if agent is not None and agent.name else ()
    if seen is not None and (seen.run_id, seen.call_id) == (ctx.run_id, ctx.tool_call_id):
        worker = seen.worker  # the whole chain, which only the gate knows
        start = seen.start or start
    made = Call(
        tool=name,
        args=args,
        toolset=toolset,
        worker=worker,
        labels=frozenset(labels),
        claimed=frozenset(claimed),
        deps=getattr(ctx, "deps", None),
        start=start,
    )
    root = start or os.path.realpath(policy.root or os.curdir)
    return made.changed(resolved=followed(root, policy.paths_of(made))) if policy.wants_paths else made


# --- one tool of a FunctionToolset ---


def approval_tool(
    toolset: FunctionToolset[Any], policy: Rules = None, *, labels: Iterable[str] | str = (), **options: Any
) -> Callable[[F], F]:
    """Add a function to a toolset as a tool with a policy of its own: `@approval_tool(tools, "allow")`.

    `options` are those of `FunctionToolset.add_function`. The toolset's other tools have nothing attached: they ask.
    The policy goes with the tool: in another toolset it still denies and asks, though what it allows is only known to
    a gate where it was added.
    """

    def register(function: F) -> F:
        rules = _rules_of(toolset)
        before = set(toolset.tools)
        toolset.add_function(function, **options)
        name = next(iter(set(toolset.tools) - before))
        given = (labels,) if isinstance(labels, str) else tuple(labels)
        rules.add(toolset.tools[name], copy.copy(policy_of(policy, toolset.id or name)), given)
        return function

    return register


@dataclass(frozen=True)
class _ToolRules:
    """What `@approval_tool` attached to the tools of one `FunctionToolset`."""

    toolset: FunctionToolset[Any]
    call: Callable[..., Any]
    """The toolset's own way to call a tool."""
    tools: dict[str, tuple[Policy, tuple[str, ...]]] = field(
        default_factory=dict[str, "tuple[Policy, tuple[str, ...]]"]
    )
    silence: Policy = field(default_factory=lambda: policy_of(None, "toolset"))
    """For tools that have nothing attached."""
    policies: list[Policy] = field(default_factory=list[Policy])
    """All of them: what the gate has heard when it has asked."""

    def __post_init__(self) -> None:
        self.policies.append(self.silence)

    def add(self, tool: Tool[Any], policy: Policy, labels: tuple[str, ...]) -> None:
        """Attach a policy to a tool. The tool itself keeps to it, so that it does in any other toolset too."""
        self.tools[tool.name] = policy, labels
        self.policies.append(policy)
        if labels:
            declared = (tool.metadata or {}).get("labels") or ()
            known = (declared,) if isinstance(declared, str) else tuple(declared)
            tool.metadata = {**(tool.metadata or {}), "labels": (*known, *labels)}
        name, schema = tool.name, tool.function_schema
        run = schema.call

        async def kept_to(args: dict[str, Any], ctx: RunContext[Any]) -> Any:
            await self.hold(name, args, ctx)
            return await run(args, ctx)

        setattr(schema, "call", kept_to)  # noqa: B010 - a method of its class

    def capability_labels(self, name: str, args: Mapping[str, Any], ctx: Any) -> tuple[str, ...]:
        return self.tools[name][1] if name in self.tools else ()

    def needs_approval(self, name: str, args: Mapping[str, Any], ctx: Any) -> Verdict:
        policy, labels = self.tools.get(name) or (self.silence, ())
        return _verdict(policy, _call(policy, name, args, ctx, self.toolset.id, labels))

    async def hold(self, name: str, args: dict[str, Any], ctx: RunContext[Any]) -> None:
        """Raise what keeps a call from running, unless it was judged with the tool's policy heard."""
        policy, _ = self.tools.get(name) or (self.silence, ())
        if not may_run(ctx, name, args, policy):
            await _hold(self.needs_approval(name, args, ctx), name, [(self.toolset, name)], args, ctx)

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        if name not in self.tools:
            await self.hold(name, tool_args, ctx)
        return await self.call(name, tool_args, ctx, tool)


def _rules_of(toolset: FunctionToolset[Any]) -> _ToolRules:
    """What is attached to a toolset. The first time, its instance gets the hooks that the gate looks for."""
    found = vars(toolset).get("signoff_rules")
    if isinstance(found, _ToolRules):
        return found
    if hasattr(toolset, "needs_approval"):
        raise WrongUse(f"{toolset.label} has a policy of its own: attach yours with with_approval")
    rules = _ToolRules(toolset, toolset.call_tool)
    for name in ("needs_approval", "capability_labels", "call_tool", "policies"):
        setattr(toolset, name, getattr(rules, name))
    setattr(toolset, "signoff_rules", rules)  # noqa: B010 - no attribute of the class
    return rules
