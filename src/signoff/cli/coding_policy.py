"""Generate a policy for a coding agent. Test and build commands are derived from the project's files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill

from signoff.cli.own_checks import own_checks
from signoff.outside.coding_agents import AGENTS, CLAUDE_CODE

TEMPLATE = Path(__file__).parent / "templates" / "coding-agent.yaml"
LAST = "[read-only]"
"""The list of commands in the template, to which the derived commands are added."""
INSIDE = "[inside]"
"""The list of the agent's own tools in the template."""
REWRITES = "[rewrites]"
"""The list of commands in the template that a check covers, and that change files."""
_RULE = re.compile(r"  - id: rewrites\n(?:    .*\n)+\n")
_QUOTED = re.compile(r"[^\w ./=-]|:(?: |\Z)")


def coding_policy(directory: Path, agent: str = CLAUDE_CODE.name, *, network: bool = False) -> str:
    """The text of a signoff.yaml for this coding agent in the project in a directory.

    With `network`, it also allows commands that only read over the network.
    """
    found = own_checks(directory)
    text = TEMPLATE.read_text(encoding="utf-8")
    text = text.replace(
        LAST, _wrapped(["read-only", *(["network-reads"] if network else []), *map(_written, found.allowed)], 15), 1
    )
    if found.rewrites:
        text = text.replace(REWRITES, _wrapped(list(map(_written, found.rewrites)), 15), 1)
    else:
        text = _RULE.sub("", text, count=1)
    return text.replace(INSIDE, _wrapped(AGENTS[agent].bookkeeping, 12), 1)


def _wrapped(words: Sequence[str], indent: int) -> str:
    """A list in YAML, its first line without the indent."""
    listed = ", ".join(words).replace(" ", "\0").replace(",\0", ", ")  # wrap lines only between the words
    space = " " * indent
    wrapped = fill(
        f"[{listed}]",
        112,
        initial_indent=space,
        subsequent_indent=f"{space} ",
        break_on_hyphens=False,
        break_long_words=False,
    )
    return wrapped.replace("\0", " ")[indent:]


def _written(command: str) -> str:
    return f'"{command}"' if _QUOTED.search(command) else command
