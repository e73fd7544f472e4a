"""A run of a gated agent without its gate: `agent.override(spec=…)` replaces the capabilities of an agent.

Nothing calls a capability that was replaced. So the agent's own function toolset, which stays, looks for a gate at the
start of each run.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, cast

from pydantic_ai import RunContext
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.toolsets import AbstractToolset

from signoff.errors import WrongUse

GatesIn = Callable[[AbstractCapability[Any]], Sequence[object]]
_AGENT, _GATES_IN = "signoff_agent", "signoff_gates_in"


def require_gate(agent: AbstractAgent[Any, Any], gates_in: GatesIn) -> None:
    """Let no run of this agent begin without a gate, as far as its own function toolset takes part in it."""
    own: Any = next(iter(agent.toolsets), None)
    if own is None or _AGENT in vars(own):
        return
    object.__setattr__(own, "__class__", _looking(own.__class__))
    vars(own)[_AGENT], vars(own)[_GATES_IN] = weakref.ref(agent), gates_in


@lru_cache(maxsize=64)
def _looking(kind: type[AbstractToolset[Any]]) -> type[AbstractToolset[Any]]:
    """Return the class of function toolsets of a kind that look for a gate: a subclass that adds nothing else."""

    async def for_run(self: Any, ctx: RunContext[Any]) -> AbstractToolset[Any]:
        own = cast("dict[str, Any]", vars(self))
        _refuse_without(ctx, own[_AGENT](), own[_GATES_IN])
        return await kind.for_run(self, ctx)

    body: dict[str, Any] = {"for_run": for_run, "__doc__": kind.__doc__, "__module__": kind.__module__}
    body["__qualname__"] = kind.__qualname__
    make: Any = type(kind)
    return make(kind.__name__, (kind,), body)


def _refuse_without(ctx: RunContext[Any], agent: AbstractAgent[Any, Any] | None, gates_in: GatesIn) -> None:
    # Where an engine executes single tools, the context has no capabilities; its run was looked at when it began.
    if agent is None or ctx.agent is not agent or ctx.root_capability is None:
        return
    if not gates_in(ctx.root_capability):
        raise WrongUse(
            f"{agent.name or 'this agent'} was made with Signoff, and this run would be without it: "
            "agent.override(spec=…) replaces the capabilities of an agent.\n"
            "  Give the run a gate of its own: agent.run(…, capabilities=[Signoff(…)])"
        )
