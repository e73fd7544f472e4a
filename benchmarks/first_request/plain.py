"""The plainest PydanticAI program that does what the worker of `start` does: two tools, one prompt, one answer."""

from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.toolsets import FunctionToolset


def read_file(path: str) -> str:
    """Read a file."""
    return Path("notes", path).read_text(encoding="utf-8")


def write_file(path: str, content: str) -> str:
    """Write a file."""
    Path("notes", path).write_text(content, encoding="utf-8")
    return f"wrote {path}"


def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    return ModelResponse(parts=[TextPart("done")])


agent = Agent(
    FunctionModel(answer), instructions="Write the notes.", toolsets=[FunctionToolset([read_file, write_file])]
)

if __name__ == "__main__":
    print(agent.run_sync("Go.").output)
