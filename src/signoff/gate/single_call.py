"""A single gated call that code inside a tool makes, and the grant for such a call.

It is a nested run inside the tool's call, whose model makes just this one call. So it is judged, asked about,
recorded and claimed like any other. While it waits for a person, the tool's call pauses with it. Once there is an
answer, the tool is called again from its beginning and finds it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests, RunContext
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_ai.usage import RunUsage
from pydantic_core import to_jsonable_python

from signoff.core.canonical import canonical
from signoff.core.grant import Grant
from signoff.errors import CannotCanonicalise, WrongUse
from signoff.gate.gated_agents import call_agent, gate_in
from signoff.gate.gated_calls import GatedCall, running_call

_CALLER: Agent[Any, Any] = Agent(output_type=[str, DeferredToolRequests])
"""Makes the calls. One for all: two agents of the same name inside one call cannot be told apart on resume."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What became of a call: its tool's result, or why it did not run."""

    ran: bool
    content: Any
    """The tool's result; for a refused call, what a model would be told."""


async def call_tool(
    ctx: RunContext[Any], toolset: AbstractToolset[Any], name: str, args: Mapping[str, Any]
) -> Answered:
    """For use inside a tool: make one call of a tool of `toolset`, through the gate around `ctx`.

    Raises `WrongUse` outside a gated tool call, or if the arguments have no JSON form.
    """
    if gate_in(ctx.root_capability) is None or not isinstance(running_call(), GatedCall):
        raise WrongUse(f"{name} can only be called inside a tool call that the gate lets run")
    try:
        prompt = f"{name} {canonical(args)}"
    except CannotCanonicalise as error:
        raise WrongUse(f"the arguments of {name} have no JSON form: {error}") from error
    made = json.loads(json.dumps(to_jsonable_python(dict(args))))

    def turn(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if (last := _last(messages)) is None:
            return ModelResponse(parts=[ToolCallPart(name, made)])
        return ModelResponse(parts=[TextPart(json.dumps(last, ensure_ascii=False))])

    output = await call_agent(
        ctx,
        _CALLER,
        prompt,
        model=FunctionModel(turn, model_name=name),
        toolsets=[toolset],
        usage=RunUsage(),  # no model is called
        conversation_id=ctx.conversation_id,  # so that grants for the session apply
    )
    return Answered(**json.loads(output))


def _last(messages: list[ModelMessage]) -> dict[str, Any] | None:
    """Return what came of the call, or None before it was made."""
    last = messages[-1]
    for part in last.parts if isinstance(last, ModelRequest) else ():
        if isinstance(part, ToolReturnPart):
            return {"ran": part.outcome == "success", "content": to_jsonable_python(part.content, fallback=str)}
    return {"ran": False, "content": "nothing came of the call"} if len(messages) > 1 else None


async def recall(
    ctx: RunContext[Any], toolset: AbstractToolset[Any], name: str, args: Mapping[str, Any]
) -> Grant | None:
    """Return the grant that a person had remembered for such a call. Nobody is asked, nothing is counted or recorded.

    Returns None too if it would not count now: policy denies the call, allows it anyway, or wants particular people.
    """
    capability = gate_in(ctx.root_capability)
    if capability is None or not isinstance(running_call(), GatedCall):
        raise WrongUse(f"remembered answers for {name} can only be looked up inside a tool call")
    alone = replace(ctx, agent=None, tool_name=name, tool_call_id=name)
    tool: ToolsetTool[Any] = (await toolset.get_tools(alone))[name]
    return await capability.remembered_for(alone, tool, dict(args))
