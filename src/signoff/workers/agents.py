"""Inspect agents defined in Python without running them: tools, gate, model, and agents that their tools name."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pydantic_ai import Agent
from pydantic_ai.toolsets import FunctionToolset

from signoff.errors import WrongUse
from signoff.gate.capability import Signoff
from signoff.gate.gated_agents import signoff_of
from signoff.policy.engine import Policy
from signoff.policy.layers import Layers
from signoff.toolset_wrappers import parts_of
from signoff.workers.listing import ToolListing, tools_of
from signoff.workers.load import load_agent
from signoff.workers.models import model_named


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFacts:
    """What is known about an agent defined in Python."""

    listing: ToolListing
    has_gate: bool
    has_code: bool = False
    """Whether a function of its gate (`judge`) decides besides the rules."""
    model_problem: WrongUse | None = None
    has_model: bool = True
    ungated: tuple[tuple[str, str], ...] = ()
    """Tools whose code names an agent without a gate, and that agent."""


async def look_at(path: str, layers: Sequence[Policy], *, connect: bool = False) -> AgentFacts:
    """Inspect the agent at `package.module:agent`. `layers` apply if it has no gate, as with `signoff run`."""
    agent = load_agent(path)
    gate = signoff_of(agent)
    return AgentFacts(
        listing=await tools_of(agent, gate or Signoff(Layers(tuple(layers))), connect=connect),
        has_gate=gate is not None,
        has_code=gate is not None and gate.judge is not None,
        has_model=agent.model is not None,
        model_problem=_problem(agent.model),
        ungated=tuple(_ungated(agent)),
    )


def _problem(model: Any) -> WrongUse | None:
    """Return why a model that is given by name cannot be made. No request is sent to it."""
    if isinstance(model, str):
        try:
            model_named(model)
        except WrongUse as error:
            return error
    return None


def _ungated(agent: Agent[Any, Any]) -> Iterator[tuple[str, str]]:
    """Yield function tools that name another agent without a gate of its own. Less direct references are not found."""
    functions = (
        (name, inspect.unwrap(tool.function))
        for toolset in agent.toolsets
        for part in parts_of(toolset)
        if isinstance(part, FunctionToolset)
        for name, tool in part.tools.items()
    )
    for tool, function in functions:
        try:
            found = inspect.getclosurevars(function)
        except (TypeError, ValueError):  # not written in Python
            continue
        for name, value in {**found.globals, **found.nonlocals}.items():
            if isinstance(value, Agent) and value is not agent:
                inner = cast("Agent[Any, Any]", value)
                if signoff_of(inner) is None:
                    yield tool, str(inner.name or name)
