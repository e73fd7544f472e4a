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
COMMANDS = "  - id: commands\n"
"""Where that rule begins in the template."""
BY_FILE = {
    "pyproject.toml": ("pytest *", "python -m pytest *", "ruff check *", "mypy *", "pyright *"),
    "setup.py": ("pytest *", "python -m pytest *"),
    "tox.ini": ("tox",),
    "package.json": ("npm test", "npm run test", "npm run build", "npm run lint"),
    "Cargo.toml": ("cargo test", "cargo build", "cargo check"),
    "go.mod": ("go test ./...", "go build ./...", "go vet ./..."),
    "Makefile": ("make test", "make build", "make lint", "make check"),
}
"""Test and build commands, by the file that indicates them."""
_PYTEST = (
    "-c --config-file -o --override-ini -p --rootdir --confcutdir --basetemp --log-file --junitxml --junit-xml --debug "
    "--pastebin --cov-report --cov-config --html --report-log --json-report-file --benchmark-json --benchmark-storage"
)
WRITING = {
    "pytest *": _PYTEST,
    "python -m pytest *": _PYTEST,
    "ruff check *": "--fix --fix-only --unsafe-fixes --add-noqa -o --output-file --config --cache-dir",
    "mypy *": "--config-file --junit-xml --cache-dir --python-executable --install-types --any-exprs-report "
    "--cobertura-xml-report --html-report --linecount-report --linecoverage-report --lineprecision-report --txt-report "
    "--xml-report --xslt-html-report --xslt-txt-report",
    "pyright *": "-p --project --pythonpath --venvpath -v --createstub --writebaseline --baselinefile",
}
"""Options that a trailing `*` must not match: they write or delete at a given path, or load other settings."""
_RULE = """\
  - id: options-that-write
    ask:
      label: proc.exec
      command:
{commands}
    reason: the option writes or deletes files where it says, or loads other settings or code
    examples:
      match: [{{tool: Bash, label: proc.exec, args: {{command: pytest -q --junitxml=.git/hooks/pre-commit}}}}]
      miss: [{{tool: Bash, label: proc.exec, args: {{command: pytest -q tests -k name}}}}]

"""


def coding_policy(directory: Path, agent: str = CLAUDE_CODE.name) -> str:
    """The text of a signoff.yaml for this coding agent in the project in a directory."""
    found = [command for file, commands in BY_FILE.items() if (directory / file).is_file() for command in commands]
    found = list(dict.fromkeys(found))
    more = "".join(f", {_written(one)}" for one in found)
    text = TEMPLATE.read_text(encoding="utf-8").replace(LAST, f"{LAST[:-1]}{more}]", 1)
    text = text.replace(INSIDE, _wrapped(AGENTS[agent].bookkeeping, 12), 1)
    options = [f"{one[:-2]} {option}" for one in found for option in WRITING.get(one, "").split()]
    return text.replace(COMMANDS, f"{_rule(options)}{COMMANDS}", 1) if options else text


def _rule(commands: list[str]) -> str:
    """The rule that asks about these options; it precedes the rules that allow the programs."""
    return _RULE.format(commands=" " * 8 + _wrapped(commands, 8))


def _wrapped(words: Sequence[str], indent: int) -> str:
    """A list in YAML, its first line without the indent."""
    listed = ", ".join(words).replace(" ", "\0").replace(",\0", ", ")  # wrap lines only between the words
    space = " " * indent
    wrapped = fill(f"[{listed}]", 112, initial_indent=space, subsequent_indent=f"{space} ", break_on_hyphens=False)
    return wrapped.replace("\0", " ")[indent:]


def _written(command: str) -> str:
    return f'"{command}"' if "*" in command else command
