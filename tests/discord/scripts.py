"""What the agents of the stories do: turns of scripted models, and tools that leave a trace each time they run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

TOOLS = '''\
"""Tools that leave a trace each time they run."""

from pathlib import Path

from pydantic_ai.toolsets import FunctionToolset

bell: FunctionToolset[None] = FunctionToolset(id="bell")


@bell.tool_plain
def ring(name: str) -> str:
    """Ring a bell."""
    with open(f"{name}.rung", "a") as file:
        file.write("rung\\n")
    return f"{name} was rung"


@bell.tool_plain
def hang(name: str, early: bool) -> str:
    """Ring a bell, early or late; in between it hangs, if there is somebody to tell that it does."""
    if early:
        ring(name)
    if Path(f"{name}.began").exists():
        Path(f"{name}.began").write_text("began")
        Path(f"{name}.ended").read_text()
    return f"{name} was rung" if early else ring(name)


TOOLSETS = {"bell": bell}
'''

Turns = Sequence[Mapping[str, Any]]


def calls(*made: tuple[str, Mapping[str, Any]]) -> dict[str, Any]:
    """A turn in which the agent calls tools."""
    return {"calls": [{"tool": tool, "args": dict(args)} for tool, args in made]}


def writes(path: str, content: str) -> dict[str, Any]:
    return calls(("write_file", {"path": path, "content": content}))


def rings(name: str) -> dict[str, Any]:
    return calls(("ring", {"name": name}))


def says(text: str) -> dict[str, Any]:
    """A turn in which it answers; `{{last}}` is what the tools said."""
    return {"say": text}
