"""A first policy for a coding agent in a project: what tests and builds it is taken from the files that are there."""

from __future__ import annotations

from pathlib import Path

TEMPLATE = Path(__file__).parent / "templates" / "coding-agent.yaml"
LAST = '"git commit -m *"]'
"""Where the list of commands ends in the template; what is found is put in front of that."""
BY_FILE = {
    "pyproject.toml": ("pytest *", "python -m pytest *", "ruff check *", "mypy *", "pyright *"),
    "setup.py": ("pytest *", "python -m pytest *"),
    "tox.ini": ("tox",),
    "package.json": ("npm test", "npm run test", "npm run build", "npm run lint"),
    "Cargo.toml": ("cargo test", "cargo build", "cargo check"),
    "go.mod": ("go test ./...", "go build ./...", "go vet ./..."),
    "Makefile": ("make test", "make build", "make lint", "make check"),
}
"""What tests and builds a project that has such a file."""


def coding_policy(directory: Path) -> str:
    """The text of a signoff.yaml for the project in a directory."""
    found = [command for file, commands in BY_FILE.items() if (directory / file).is_file() for command in commands]
    more = "".join(f", {_written(one)}" for one in dict.fromkeys(found))
    return TEMPLATE.read_text(encoding="utf-8").replace(LAST, f"{LAST[:-1]}{more}]", 1)


def _written(command: str) -> str:
    return f'"{command}"' if "*" in command else command
