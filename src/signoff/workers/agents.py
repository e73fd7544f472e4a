"""Inspect agents defined in Python without running them: tools, gate, model, and agents that their tools name."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pydantic_ai import Agent
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset, WrapperToolset

from signoff.errors import WrongUse
from signoff.gate.gated_agents import signoff_of
from signoff.policy.engine import Policy
from signoff.workers.inspect import InspectedAgent, tools_of
from signoff.workers.load import load_agent
from signoff.workers.models import model_named
from signoff.workers.survey import Reachable, WorkerSurvey

NAMELESS = "agent"
"""The name of an unnamed agent in rules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFacts:
    """What is known about an agent defined in Python."""

    survey: WorkerSurvey
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
    policies = gate.policies if gate is not None else tuple(layers)
    look = InspectedAgent(agent=agent)
    if gate is not None:
        look = InspectedAgent(agent=agent, native=gate.native, secrets=tuple(gate.secrets))
    survey = WorkerSurvey()
    survey.built[path] = found = await tools_of(look, connect=connect)
    name = agent.name or NAMELESS
    for tool in found.tools:
        reach = tool.reach(policies, (name,))
        survey.tools.append(Reachable(worker=path, chain=(name,), tool=tool, policies=policies, reach=reach))
    survey.unknown.extend(((path,), toolset, why) for toolset, why in found.unknown)
    return AgentFacts(
        survey=survey,
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
    for toolset in agent.toolsets:
        for tool, function in _functions(toolset):
            for name, value in _named_in(function):
                if not isinstance(value, Agent) or value is agent:
                    continue
                inner = cast("Agent[Any, Any]", value)
                if signoff_of(inner) is None:
                    yield tool, str(inner.name or name)


def _functions(toolset: AbstractToolset[Any]) -> Iterator[tuple[str, Any]]:
    while isinstance(toolset, WrapperToolset):
        toolset = toolset.wrapped
    if isinstance(toolset, FunctionToolset):
        for name, tool in toolset.tools.items():
            yield name, inspect.unwrap(tool.function)


def _named_in(function: Any) -> Iterator[tuple[str, Any]]:
    """Yield the values that the code of a function names, in its closure and its module."""
    try:
        found = inspect.getclosurevars(function)
    except (TypeError, ValueError):  # not written in Python
        return
    yield from {**found.globals, **found.nonlocals}.items()
