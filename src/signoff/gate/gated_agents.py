"""Agents and their gates: which gate an agent has, and agents that run inside a tool of another one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from pydantic_ai import Agent, RunContext
from pydantic_ai.capabilities import AbstractCapability, CombinedCapability
from pydantic_ai.messages import UserContent

from signoff.gate.capability import Signoff
from signoff.gate.gated_calls import entering, running_call

OutT = TypeVar("OutT")

NOT_GIVEN: Any = object()


def signoff_of(agent: Agent[Any, Any]) -> Signoff | None:
    """Return the agent's own gate, if it has one."""
    for capability in agent.root_capability.capabilities:
        if isinstance(capability, Signoff):
            return capability
    return None


def gate_in(capability: AbstractCapability[Any] | None) -> Signoff | None:
    """Return the gate among an agent's or a run's capabilities, if there is one."""
    chain = capability.capabilities if isinstance(capability, CombinedCapability) else [capability]
    return next((one for one in chain if isinstance(one, Signoff)), None)


async def call_agent(
    ctx: RunContext[Any],
    agent: Agent[Any, OutT],
    prompt: str | Sequence[UserContent] | None = None,
    *,
    deps: Any = NOT_GIVEN,
    ends_call: bool = False,
    **options: Any,
) -> OutT:
    """For use inside a tool: run another agent, and return its output.

    If that agent waits for a person, this call pauses too. When the run is resumed with an answer, the tool is called
    again from its beginning, and the agent continues where it was: code before this line is repeated.
    The agent shares `deps` and usage with the caller unless told otherwise; an agent without a `Signoff` capability
    runs behind the caller's. `ends_call` is a promise: from here on the tool only waits for this and returns. Then an
    approved call whose process dies does not become unknown: it is made again and continues.
    `options` go to `agent.run`.
    """
    around = gate_in(ctx.root_capability)
    if around is not None and gate_in(agent.root_capability) is None:
        options["capabilities"] = [*options.get("capabilities", ()), around]
    given: dict[str, Any] = {"usage": ctx.usage, "infer_name": False, **options}
    given["deps"] = ctx.deps if deps is NOT_GIVEN else deps
    with entering(running_call(), ends_call=ends_call):
        return (await agent.run(prompt, **given)).output
