"""A first policy for a coding agent in a project: what tests and builds it is taken from the files that are there."""

from __future__ import annotations

from pathlib import Path

TEMPLATE = Path(__file__).parent / "templates" / "coding-agent.yaml"
ALWAYS = ("read-only", "git add *", "git commit -m *")
BY_FILE = {
    "pyproject.toml": ("pytest *", "python -m pytest *", "ruff check *", "mypy *", "pyright *"),
    "setup.py": ("pytest *", "python -m pytest *"),
    "tox.ini": ("tox *",),
    "package.json": ("npm test", "npm run test", "npm run build", "npm run lint"),
    "Cargo.toml": ("cargo test *", "cargo build *", "cargo check *"),
    "go.mod": ("go test *", "go build *", "go vet *"),
    "Makefile": ("make test", "make build", "make lint", "make check"),
}
"""What tests and builds a project that has such a file."""


def coding_policy(directory: Path) -> str:
    """The text of a signoff.yaml for the project in a directory."""
    found = [command for file, commands in BY_FILE.items() if (directory / file).is_file() for command in commands]
    commands = list(dict.fromkeys((*ALWAYS, *found)))
    written = ", ".join(f'"{one}"' if "*" in one else one for one in commands)
    return TEMPLATE.read_text(encoding="utf-8").replace("@COMMANDS@", written)
