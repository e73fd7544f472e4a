"""Policies that are attached to a toolset, as a mark on the object or by one of its attributes."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from pydantic_ai.toolsets import AbstractToolset, FunctionToolset, WrapperToolset

from signoff.core.verdict import Effect
from signoff.errors import SignoffError, WrongUse
from signoff.policy.engine import Policy
from signoff.policy.phrases import did_you_mean, nearest, shown
from signoff.policy.tool_labels import label_problem, pattern_problem
from signoff.toolset_wrappers import parts_of

Rules: TypeAlias = "Policy | str | Sequence[Mapping[str, Any]] | Mapping[str, Mapping[str, Any]] | None"
"""A `Policy`, rules as in a file, one of `allow`, `ask` and `deny` for every call, or None: nothing attached.

A mapping says by tool name what is approved beforehand: `{"look": {"pre_approved": True}}`."""
Labels: TypeAlias = "Mapping[str, Iterable[str] | str]"
"""Capability labels by tool name or glob."""

POLICY = "approval_policy"
"""The attribute that means the same as `with_approval`."""
BY_TOOL = ("approval_config", "__llm_do_approval__", "__llm_do_approval_config__")
"""Attributes of toolsets written for llm-do: what is approved beforehand, by tool."""
ATTRIBUTES = (POLICY, *BY_TOOL)
LAYERS = "signoff_layers"
"""Where a marked toolset keeps its layers, outermost first."""
_BY_ATTRIBUTE = "signoff_layers_by_attribute"
_OPTIONS = ("pre_approved", "blocked", "block_reason")
_MODES = {"prompt": "ask", "auto_approve": "allow", "approve_all": "allow"}
"""llm-do's approval modes, and the policy that means the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsetLayer:
    """One policy on a toolset, and the toolset's name in it."""

    policy: Policy
    name: str | None = None
    """The toolset's name in rules (`toolset:`) and on cards."""
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, "tuple[str, ...]"])
    """Capability labels by tool name or glob."""
    config: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the toolset's own `needs_approval` gets as `config`."""
    tool: str | None = None
    """The only tool it is about; None for all."""
    by_catalog: bool = False
    """Whether a catalog entry attached it. Inside the toolset of another entry it can only make things stricter."""
    alone: bool = False
    """Whether it decides alone: no other policy that is attached to the toolset answers where it is silent."""
    named: tuple[str, ...] = ()
    """The tools that a mapping by tool names."""


def layers_of(toolset: AbstractToolset[Any]) -> tuple[ToolsetLayer, ...]:
    """Return the policies on a toolset, outermost first: those it was marked with, then those of its attributes."""
    return (*vars(toolset).get(LAYERS, ()), *_by_attribute(toolset))


def name_on(toolset: AbstractToolset[Any]) -> str | None:
    """Return the name that the outermost policy on a toolset gives it."""
    return next((layer.name for layer in layers_of(toolset) if layer.name is not None), None)


# --- attributes ---


def _by_attribute(toolset: AbstractToolset[Any]) -> tuple[ToolsetLayer, ...]:
    """Return the layers of a toolset's attributes. Each attribute is parsed once, and again if it was changed."""
    found = tuple((name, value) for name in ATTRIBUTES if (value := _value(toolset, name)) is not None)
    if not found:
        return ()
    known = vars(toolset).get(_BY_ATTRIBUTE)
    if known is not None and known[0] == found:
        return known[1]
    layers = tuple(_layer_by(toolset, name, value) for name, value in found)
    # A copy, so that a change in place is noticed later.
    now = tuple((name, _copied(one)) for name, one in found)
    vars(toolset)[_BY_ATTRIBUTE] = (now, layers)
    return layers


def _copied(value: object) -> object:
    return copy.deepcopy(cast("object", value)) if isinstance(value, dict | list) else value


def _value(toolset: AbstractToolset[Any], name: str) -> object:
    try:
        return getattr(toolset, name, None)
    except Exception as error:  # doubt asks: what cannot be read is no policy
        return error


def _layer_by(toolset: AbstractToolset[Any], attribute: str, value: object) -> ToolsetLayer:
    try:
        return attribute_layer(toolset, attribute, value)
    except SignoffError as error:
        reason = f"the attribute {attribute} of {toolset.label} is no policy: {error}"
        asks = Policy.from_rules([{"ask": "*", "reason": reason}], file=f"<{attribute}>", name=attribute)
        return ToolsetLayer(policy=asks)


def attribute_layer(toolset: AbstractToolset[Any], attribute: str, value: object) -> ToolsetLayer:
    """Return the layer of one attribute. Raises `SignoffError` if it holds no policy."""
    if attribute in BY_TOOL and not isinstance(value, Mapping):
        raise WrongUse(f"{_a(value)}, not a mapping such as {{'look': {{'pre_approved': True}}}}")
    if not isinstance(value, Policy | str | Mapping | list | tuple):
        raise WrongUse(f"{_a(value)}; write allow, ask, deny, or a list of rules")
    return layer_for(toolset, cast("Rules", value))


def check_attributes(toolset: AbstractToolset[Any]) -> None:
    """Raise `SignoffError` if an attribute that should hold a policy does not."""
    for name in ATTRIBUTES:
        if (value := _value(shared_in(toolset), name)) is not None:
            attribute_layer(toolset, name, value)


def shared_in(toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
    """Return the toolset in a plain wrapper, which does nothing but carry a mark; any other toolset as it is."""
    while (
        isinstance(toolset, WrapperToolset) and getattr(type(toolset), "signoff_marks", type(toolset)) is WrapperToolset
    ):
        toolset = toolset.wrapped
    return toolset


def check_tool_names(toolset: AbstractToolset[Any]) -> None:
    """Raise `WrongUse` if a mapping by tool misspells a tool of the toolset, where its tools are known."""
    shared = shared_in(toolset)
    if not isinstance(shared, FunctionToolset):
        return
    for name in (name for layer in layers_of(toolset) for name in layer.named):
        if name not in shared.tools and (close := nearest(name, shared.tools, cutoff=0.75)) is not None:
            raise WrongUse(f"a policy on {shared.label} names {shown(name)}; did you mean {shown(close)}?")


# --- making a layer ---


def layer_for(
    toolset: AbstractToolset[Any],
    rules: Rules,
    *,
    name: str | None = None,
    labels: Labels | None = None,
    config: Mapping[str, Any] | None = None,
    tool: str | None = None,
    by_catalog: bool = False,
    alone: bool = False,
) -> ToolsetLayer:
    """Make a layer for a toolset, whose name in its rules is `name`, or its own id."""
    known_as = name if name is not None else toolset.id
    by_pattern = {tools: (one,) if isinstance(one, str) else tuple(one) for tools, one in (labels or {}).items()}
    for tools, given in by_pattern.items():
        for problem in (pattern_problem(tools), *map(label_problem, given)):
            if problem is not None:
                raise WrongUse(f"labels of {toolset.label}: {problem}")
    takes_more = any(callable(getattr(part, "needs_approval", None)) for part in parts_of(toolset))
    by_tool = dict(rules) if isinstance(rules, Mapping) else {}
    return ToolsetLayer(
        policy=policy_of(rules, known_as or "toolset", takes_more=takes_more),
        name=known_as,
        labels=by_pattern,
        config={**(config or {}), **by_tool},
        tool=tool,
        by_catalog=by_catalog,
        alone=alone,
        named=tuple(by_tool),
    )


def policy_of(rules: Rules, name: str, *, takes_more: bool = True) -> Policy:
    """Convert rules in any of the accepted forms to a policy.

    In a mapping by tool, options that are not about approval are for the toolset itself, if it `takes_more`.
    """
    if isinstance(rules, Policy):
        return rules
    if rules is None:
        return Policy(rules=(), file=f"<{name}>", name=name)
    if isinstance(rules, str):
        if rules not in tuple(Effect):
            raise WrongUse(f"{rules!r} is not a policy: write allow, ask, deny, or a list of rules")
        rules = [{rules: "*"}]
    elif isinstance(rules, Mapping):
        rules = [rule for tool, options in rules.items() for rule in _rules_by_tool(tool, options, takes_more)]
    return Policy.from_rules(rules, file=f"<{name}>", name=name, root=os.path.realpath(os.curdir))


def _rules_by_tool(tool: object, options: object, takes_more: bool) -> list[dict[str, Any]]:
    """Convert `{tool: {"pre_approved": True}}` to rules."""
    if not isinstance(tool, str) or not tool or any(one in tool for one in "*?["):
        raise WrongUse(f"{tool!r} is not the name of a tool: name each tool, or write a list of rules")
    if not isinstance(options, Mapping):
        raise WrongUse(f"{shown(tool)} has {_a(options)}; {_instead_of(tool, options)}")
    given = cast("Mapping[str, Any]", options)
    unknown = next((one for one in given if one not in _OPTIONS), None)
    if unknown is not None and not takes_more:
        raise WrongUse(f"{shown(tool)} has the option {shown(str(unknown))}: {did_you_mean(str(unknown), _OPTIONS)}")
    approved, blocked = given.get("pre_approved"), given.get("blocked")
    for key, value in (("pre_approved", approved), ("blocked", blocked)):
        if value is not None and not isinstance(value, bool):
            raise WrongUse(f"{key} of {shown(tool)} is {_a(value)}, not True or False")
    if blocked:
        return [{"deny": {"tool": tool}, "reason": str(given.get("block_reason") or "blocked by its approval config")}]
    if approved is None:
        return []
    return [{"allow" if approved else "ask": {"tool": tool}}]


def _instead_of(tool: str, options: object) -> str:
    """What to write instead of options that are none, if they look like something else that people know."""
    if tool == "mode" and isinstance(options, str) and options in _MODES:
        return f"write {_MODES[options]!r} in place of the mapping"
    if tool in _OPTIONS and isinstance(options, bool):
        each = f"{{NAME: {{{tool!r}: {options}}}}}"
        return f"for every call, write {effect_of(tool, value=options)!r} in place of the mapping; for one tool, {each}"
    return f"write {{{tool!r}: {{'pre_approved': True}}}}, or rules"


def effect_of(option: str, *, value: object) -> str:
    """The effect that an option of a tool means."""
    if not value:
        return "ask"
    return "allow" if option == "pre_approved" else "deny"


def _a(value: object) -> str:
    kind = type(value).__name__
    return f"an {kind}" if kind[:1].lower() in "aeiou" else f"a {kind}"
