"""Lines in which a rule allows one command, and another only reads: that one is looked at as it is when it is alone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.start import signoff

RULES = [{"id": "work", "allow": {"tool": "shell", "command": ["tool *", "read-only"]}}]
needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for directory in ("workers", "sub", "calm"):
        (root / directory).mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "tool"
    program.write_text("#!/bin/sh\necho tool ran\n")
    program.chmod(0o755)
    (root / "sub" / ".env").write_text("KEY=hunter2\n")
    (root / "calm" / "a.txt").write_text("KEY of a map\n")
    (root / "workers" / "coder.yaml").write_text("instructions: Work.\ntoolsets: [sh]\n")
    entry = {"use": "shell_file_ops", "config": {"root": ".", "sandbox": "off"}}
    (root / "signoff.yaml").write_text(yaml.safe_dump({"toolsets": {"sh": entry}, "policy": RULES}))
    return root


def run(project: Path, *commands: str) -> tuple[list[str], str]:
    """What became of each command, and all that was told."""
    turns: list[Any] = [{"calls": [{"tool": "shell", "args": {"command": one}}]} for one in commands]
    (project / "script.yaml").write_text(yaml.safe_dump([*turns, {"say": "{{last}}"}]))
    done = signoff(
        *("run", "coder", "go", "--model", "script:script.yaml", "--json", "--mode", "auto_deny"),
        cwd=project,
        PATH=f"{project.parent / 'bin'}:{os.environ['PATH']}",
    )
    assert done.returncode in (0, 4), done.stderr  # 4: a call was denied
    events = [json.loads(line) for line in done.stdout.splitlines()]
    return [one["event"] for one in events if one.get("event") in ("allowed", "denied")], done.stdout


def test_secrets_below_a_directory_are_asked_about_beside_an_allowed_command(project: Path) -> None:
    reads = ["grep -r KEY sub", "cd sub && grep -r KEY .", "cat sub/.e*"]
    beside = [line for one in reads for line in (f"tool 1; {one}", f"tool 1 && {one}", f"{one}; tool 1")]
    became, told = run(project, *reads, *beside)
    assert became == ["denied"] * (len(reads) + len(beside))
    assert "hunter2" not in told
    calm = ["tool 1; grep -r KEY calm", "tool 1 | cat calm/a.txt", "tool 1 && ls"]
    assert run(project, *calm)[0] == ["allowed"] * len(calm)


@needs_git
def test_a_repository_that_runs_programs_is_asked_about_beside_an_allowed_command(project: Path) -> None:
    ran = project.parent / "ran"
    (project / "t.txt").write_text("one\n")
    for words in (
        ("init", "-q"),
        ("add", "t.txt"),
        ("-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "x"),
        ("config", "filter.x.clean", f"touch {ran}; cat"),
    ):
        subprocess.run(["git", *words], cwd=project, check=True)
    assert run(project, "tool 1; git status -s")[0] == ["denied"]
    (project / ".gitattributes").write_text("*.txt filter=x\n")
    (project / "t.txt").write_text("changed\n")
    assert run(project, "git status -s", "tool 1; git status -s", "tool 1 | git status -s")[0] == ["denied"] * 3
    assert not ran.exists()
