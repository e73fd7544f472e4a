"""The demo's tools and agent. The tools do what they say, inside one folder."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelRetry
from pydantic_ai.toolsets import FunctionToolset

from signoff.core.preview import unified_diff
from signoff.workers.script import ScriptedModel

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
    "run_command": {"command": "wc -l notes.md > counts.txt"},
}
"""What `--answers edit` changes, by tool."""


LABELS = {
    "list_files": "fs.read",
    "read_file": "fs.read",
    "write_file": "fs.write",
    "delete_file": "fs.write",
    "run_command": "proc.exec",
}


class Workspace(FunctionToolset[Any]):
    """Tools for the files of one folder, which say what they are about to do."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        super().__init__(
            [self.list_files, self.read_file, self.write_file, self.delete_file, self.run_command], id="workspace"
        )

    def capability_labels(self, name: str, args: Mapping[str, Any], ctx: Any) -> tuple[str, ...]:
        return (LABELS[name],)

    def describe_approval(self, name: str, args: Mapping[str, Any], ctx: Any) -> Mapping[str, Any] | None:
        match name:
            case "write_file":
                diff = unified_diff(self._text(args["path"]), args["content"], args["path"])
                return {"summary": f"Write {args['path']}", "path": args["path"], "diff": diff.text}
            case "delete_file":
                diff = unified_diff(self._text(args["path"]), "", args["path"])
                return {"summary": f"Delete {args['path']}", "path": args["path"], "diff": diff.text}
            case "run_command":
                return {"summary": f"Run: {args['command']}"}
            case _:
                return None

    def list_files(self) -> list[str]:
        """List all files."""
        return sorted(str(file.relative_to(self.root)) for file in self.root.rglob("*") if file.is_file())

    def read_file(self, path: str) -> str:
        """Read a file."""
        return self._inside(path).read_text(encoding="utf-8")

    def write_file(self, path: str, content: str) -> str:
        """Write a file, replacing what it holds."""
        file = self._inside(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
        return f"wrote {len(content)} characters to {path}"

    def delete_file(self, path: str) -> str:
        """Delete a file."""
        self._inside(path).unlink()
        return f"deleted {path}"

    def run_command(self, command: str) -> str:
        """Run a shell command in the folder."""
        done = subprocess.run(
            ["/bin/sh", "-c", command], cwd=self.root, capture_output=True, text=True, timeout=30, check=False
        )
        return (done.stdout + done.stderr).strip() or f"exit code {done.returncode}"

    def _inside(self, path: str) -> Path:
        file = (self.root / path).resolve()
        if not file.is_relative_to(self.root):
            raise ModelRetry(f"{path} is outside the folder")
        return file

    def _text(self, path: str) -> str:
        try:
            return self._inside(path).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            return ""


def lay_out(root: Path) -> None:
    """Put the demo's files into an empty folder."""
    for name, text in FILES.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def demo_agent(root: Path) -> Agent[None, str]:
    """The agent, working on `root`."""
    return Agent(ScriptedModel.from_file(SCRIPT), name="writer", toolsets=[Workspace(root)])
