"""PydanticAI agents that play the script."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset, WrapperToolset
from pydantic_ai.usage import RequestUsage

from benchmarks.script import DONE, PROMPT, TOOL, Tally, arguments, said


def model(calls: int, turns: int = 1) -> FunctionModel:
    """Turns of calls, then the end. Without a usage of ours the model would count words over the whole history."""

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        usage = RequestUsage(input_tokens=1, output_tokens=1)
        returned = next((part for part in messages[-1].parts if isinstance(part, ToolReturnPart)), None)
        first = int(returned.tool_call_id.removeprefix("call-")) + calls if returned is not None else 0
        if first >= calls * turns:
            return ModelResponse(parts=[TextPart(DONE)], usage=usage)
        numbers = range(first, first + calls)
        made = [ToolCallPart(TOOL, arguments(number), tool_call_id=f"call-{number}") for number in numbers]
        return ModelResponse(parts=made, usage=usage)

    return FunctionModel(answer)


def history(count: int) -> list[ModelMessage]:
    """What was said before a run, in turns."""
    return [
        ModelResponse(parts=[TextPart(said(number))]) if number % 2 else ModelRequest.user_text_prompt(said(number))
        for number in range(count)
    ]


def tools(tally: Tally, *, requires_approval: bool = False) -> FunctionToolset[Any]:
    """The tool does nothing but count. It is async, as PydanticAI runs others in a thread."""

    async def write_file(path: str, body: str) -> str:
        tally.ran += 1
        return "ok"

    toolset: FunctionToolset[Any] = FunctionToolset()
    toolset.add_function(write_file, requires_approval=requires_approval)
    return toolset


class Empty(AbstractCapability[Any]):
    """What PydanticAI itself takes for a capability with a hook around calls and a toolset around toolsets."""

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        return WrapperToolset(toolset)

    async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        return await handler(args)


def agent(
    calls: int, toolset: AbstractToolset[Any], *capabilities: Any, suspends: bool = False, turns: int = 1
) -> Agent[Any, Any]:
    output: Any = [str, DeferredToolRequests] if suspends else str
    return Agent(
        model(calls, turns), name="writer", output_type=output, toolsets=[toolset], capabilities=list(capabilities)
    )


async def run_whole(agent: Agent[Any, Any], tally: Tally, calls: int) -> None:
    """Run to the end, and make sure that everything ran."""
    result = await agent.run(PROMPT)
    assert result.output == DONE
    tally.expect(calls)
