"""A worker with one toolset, to try signoff on. Make it yours, or point signoff at an agent you have."""

from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.toolsets import FunctionToolset

NOTES = Path("notes")

notes = FunctionToolset(id="notes")


@notes.tool_plain
def list_notes() -> list[str]:
    """List the names of all notes."""
    return sorted(file.stem for file in NOTES.glob("*.txt"))


@notes.tool_plain
def read_note(name: str) -> str:
    """Read a note."""
    return (NOTES / f"{Path(name).name}.txt").read_text()


@notes.tool_plain
def write_note(name: str, text: str) -> str:
    """Write a note, replacing what it holds."""
    NOTES.mkdir(exist_ok=True)
    (NOTES / f"{Path(name).name}.txt").write_text(text)
    return f"wrote {name}"


agent = Agent(name="notetaker", instructions="You keep the user's notes.", toolsets=[notes])
