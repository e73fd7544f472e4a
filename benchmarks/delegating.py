"""Agents and workers that call each other by one script: an agent as PydanticAI's tool, `call_agent`, `worker_call`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests, RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset
from pydantic_ai.usage import RequestUsage, UsageLimits

from benchmarks.agents import tools
from benchmarks.script import DONE, TOOL, Tally, arguments
from signoff.config import Settings, load_settings
from signoff.gate.gated_agents import call_agent

CALL = "worker_call"
CALLER, CALLED = "editor", "writer"
NO_LIMIT = UsageLimits(request_limit=None)
"""Runs count to the run that called them: PydanticAI's 50 requests would be used up."""

PROJECT = """\
policy:
  - allow: worker_call
  - ask: write_file
plugins: {allow: ["benchmarks.delegating"]}
toolsets:
  writing: {use: "benchmarks.delegating:writing"}
"""
WORKERS = {
    CALLER: f"description: Has files written.\ninstructions: Have the files written.\ndelegates: [{CALLED}]\n",
    CALLED: "description: Writes files.\ninstructions: Write the files.\ntoolsets: [writing]\n",
}
WRITTEN = Tally()
"""What the tool of the workers did: a project's toolset is made from its name alone."""


def writing() -> FunctionToolset[Any]:
    """The toolset of the project below."""
    return tools(WRITTEN)


def project(directory: Path) -> Settings:
    """Two workers, of which one may call the other."""
    (directory / "workers").mkdir(parents=True, exist_ok=True)
    (directory / "signoff.yaml").write_text(PROJECT, encoding="utf-8")
    for name, text in WORKERS.items():
        (directory / "workers" / f"{name}.yaml").write_text(text, encoding="utf-8")
    return load_settings(directory / "signoff.yaml")


def model(delegated: int, *, writes: bool, ended: Tally) -> FunctionModel:
    """For both: whoever has somebody to call does so that often in one turn; the other writes a file, or says `done`.

    `ended` counts the runs of the one that is called, as far as the caller heard of them.
    """

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        calls = any(tool.name == CALL for tool in info.function_tools)
        returned = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
        made: list[ToolCallPart] = []
        if returned:
            if calls:
                ended.ran += sum(part.content == DONE for part in returned)
        elif calls:
            prompts = (f"Write file {number}." for number in range(delegated))
            made = [ToolCallPart(CALL, {"worker": CALLED, "prompt": prompt}) for prompt in prompts]
        elif writes:
            made = [ToolCallPart(TOOL, arguments(0))]
        return ModelResponse(parts=made or [TextPart(DONE)], usage=RequestUsage(input_tokens=1, output_tokens=1))

    return FunctionModel(answer)


Call = Callable[[RunContext[Any], Agent[Any, Any], str], Awaitable[str]]
"""How a tool has another agent do something."""


async def as_a_tool(ctx: RunContext[Any], called: Agent[Any, Any], prompt: str) -> str:
    """As PydanticAI's documentation has it."""
    return (await called.run(prompt, usage=ctx.usage, usage_limits=NO_LIMIT)).output


async def by_call_agent(ctx: RunContext[Any], called: Agent[Any, Any], prompt: str) -> str:
    return await call_agent(ctx, called, prompt, ends_call=True, usage_limits=NO_LIMIT)


def delegation(called: Agent[Any, Any], call: Call) -> FunctionToolset[Any]:
    """The one tool of whoever calls."""

    async def worker_call(ctx: RunContext[Any], worker: str, prompt: str) -> str:
        assert worker == called.name
        return await call(ctx, called, prompt)

    toolset: FunctionToolset[Any] = FunctionToolset()
    toolset.add_function(worker_call)
    return toolset


def named(
    name: str, model: FunctionModel, toolset: AbstractToolset[Any], *capabilities: Any, suspends: bool = False
) -> Agent[Any, Any]:
    output: Any = [str, DeferredToolRequests] if suspends else str
    return Agent(
        model,
        name=name,
        instructions="Write the files.",
        output_type=output,
        toolsets=[toolset],
        capabilities=list(capabilities),
    )
