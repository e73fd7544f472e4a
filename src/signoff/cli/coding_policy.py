"""Generate a policy for a coding agent. Test and build commands are derived from the project's files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill

from signoff.outside.coding_agents import AGENTS, CLAUDE_CODE

TEMPLATE = Path(__file__).parent / "templates" / "coding-agent.yaml"
LAST = "[read-only]"
"""The list of commands in the template, to which the derived commands are added."""
INSIDE = "[inside]"
"""The list of the agent's own tools in the template."""
BY_FILE = {
    "pyproject.toml": ("pytest *", "python -m pytest *", "ruff check *", "mypy *", "pyright *"),
    "setup.py": ("pytest *", "python -m pytest *"),
    "tox.ini": ("tox",),
    "package.json": ("npm test", "npm run test", "npm run build", "npm run lint"),
    "Cargo.toml": ("cargo test", "cargo build", "cargo check"),
    "go.mod": ("go test ./...", "go build ./...", "go vet ./..."),
    "Makefile": ("make test", "make build", "make lint", "make check"),
}
"""Test and build commands, by the file that indicates them. A final `*` covers no option that writes where it says."""


def coding_policy(directory: Path, agent: str = CLAUDE_CODE.name) -> str:
    """The text of a signoff.yaml for this coding agent in the project in a directory."""
    found = [command for file, commands in BY_FILE.items() if (directory / file).is_file() for command in commands]
    found = list(dict.fromkeys(found))
    more = "".join(f", {_written(one)}" for one in found)
    text = TEMPLATE.read_text(encoding="utf-8").replace(LAST, f"{LAST[:-1]}{more}]", 1)
    return text.replace(INSIDE, _wrapped(AGENTS[agent].bookkeeping, 12), 1)


def _wrapped(words: Sequence[str], indent: int) -> str:
    """A list in YAML, its first line without the indent."""
    listed = ", ".join(words).replace(" ", "\0").replace(",\0", ", ")  # wrap lines only between the words
    space = " " * indent
    wrapped = fill(f"[{listed}]", 112, initial_indent=space, subsequent_indent=f"{space} ", break_on_hyphens=False)
    return wrapped.replace("\0", " ")[indent:]


def _written(command: str) -> str:
    return f'"{command}"' if "*" in command else command
