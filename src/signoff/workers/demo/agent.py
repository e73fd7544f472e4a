"""The demo's files and its agent, which uses two of the built-in toolsets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic_ai import Agent

from signoff.toolsets.builtin_toolsets import filesystem_rw, shell_file_ops
from signoff.workers.scripted_model import ScriptedModel

HERE = Path(__file__).parent
POLICY = HERE / "policy.yaml"
SCRIPT = HERE / "script.yaml"

FILES = {
    "notes.md": "# Relase notes\n\n- Approvals survive a restart\n",
    "drafts/old-plan.md": "# Plan\n\nShip it on Friday.\n",
    ".env": "DEPLOY_TOKEN=not-a-real-token\n",
}

EDITS: Mapping[str, Mapping[str, Any]] = {
    "write_file": {"content": "# Release notes\n\n- Approvals survive a restart\n"},
    "delete_file": {"path": "drafts/old-plan.md"},
    "shell": {"command": "sort -u notes.md > sorted.md"},
}
"""What `--answers edit` changes, by tool."""


def lay_out(root: Path) -> None:
    """Write the demo's files into an empty directory."""
    for name, text in FILES.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def demo_agent(root: Path) -> Agent[None, str]:
    """Return the agent, working on `root`."""
    toolsets = [filesystem_rw(root), shell_file_ops(root)]
    return Agent(ScriptedModel.from_file(SCRIPT), name="writer", toolsets=toolsets)
