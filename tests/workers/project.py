"""A project in a directory: its file, its workers, and models that follow scripts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.run import AgentRunResult
from pydantic_ai.usage import RequestUsage

from signoff.config import Settings, load_settings
from signoff.workers.project_workers import Workers

FILES = """
policy: []
toolsets:
  files: {use: filesystem_rw, config: {root: notes}}
  reading: {use: filesystem_ro, config: {root: notes}}
"""


def project(
    directory: Path, workers: Mapping[str, str], *, file: str = FILES, scripts: Mapping[str, str] = {}
) -> Settings:
    """Write the files and read the project. `scripts` are turns by worker, which its file names `script:NAME.turns`."""
    (directory / "workers").mkdir(parents=True, exist_ok=True)
    (directory / "notes").mkdir(exist_ok=True)
    (directory / "signoff.yaml").write_text(dedent(file))
    for name, text in workers.items():
        suffix = "" if name.endswith(".md") else ".yaml"
        (directory / "workers" / f"{name}{suffix}").write_text(dedent(text))
    for name, text in scripts.items():
        (directory / "workers" / f"{name}.turns").write_text(dedent(text))
    return load_settings(directory / "signoff.yaml")


async def run(
    shop: Workers, name: str, text: str = "Go.", input: Mapping[str, Any] | None = None
) -> AgentRunResult[Any]:
    """Run a worker as a program would."""
    worker = shop.worker(name)
    return await worker.agent.run(worker.prompt(text, input), **worker.run_options(input))


def calling(tool: str, **args: Any) -> ToolCallPart:
    return ToolCallPart(tool, args)


def saying(*turns: str | ToolCallPart | list[ToolCallPart], tokens: int = 10, priced: bool = False) -> FunctionModel:
    """A model that answers turn by turn, each answer of so many tokens; `priced` as if a provider had given it."""

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        turn = turns[sum(isinstance(message, ModelResponse) for message in messages)]
        parts = [TextPart(turn)] if isinstance(turn, str) else turn if isinstance(turn, list) else [turn]
        named: dict[str, Any] = {"model_name": "claude-sonnet-4-5", "provider_name": "anthropic"} if priced else {}
        return ModelResponse(parts=parts, usage=RequestUsage(input_tokens=0, output_tokens=tokens), **named)

    return PricedModel(answer, model_name="claude-sonnet-4-5") if priced else FunctionModel(answer)


class PricedModel(FunctionModel):
    """A model of our own that goes by the name of one with a published price."""

    @property
    def system(self) -> str:
        return "anthropic"


def seeing(words: Callable[[list[ModelMessage], AgentInfo], str]) -> FunctionModel:
    """A model that says something about what it was given."""
    return FunctionModel(lambda messages, info: ModelResponse(parts=[TextPart(words(messages, info))]))
