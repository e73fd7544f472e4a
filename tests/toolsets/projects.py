"""Projects written into a directory, and packages to be found from there."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from pydantic_ai import Agent
from tests import start
from tests.gate.agents import calls, returns

from signoff import ApprovalMemory, Signoff
from signoff.config import load_settings
from signoff.testing import ScriptedApprover, ScriptedModel
from signoff.toolsets.catalog import BuiltToolset, Catalog


@dataclass
class Project:
    """A directory with a signoff.yaml."""

    directory: Path

    def write(self, name: str, text: str) -> Path:
        file = self.directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(text))
        return file

    def catalog(self, text: str) -> Catalog:
        """The catalog of a project file; it need not hold a policy."""
        whole = dedent(text)
        return Catalog(
            load_settings(
                self.write("signoff.yaml", whole if "\npolicy:" in f"\n{whole}" else f"{whole}\npolicy: []\n")
            )
        )

    def package(self, name: str, text: str) -> None:
        """A module that Python finds from the project's directory."""
        self.write(f"{name.replace('.', '/')}.py", text)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A fresh project. What it imported is forgotten afterwards."""
    path, modules = list(sys.path), set(sys.modules)
    directory = tmp_path / "project"
    directory.mkdir()
    yield Project(directory)
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


SEVERAL = """
import json, sys
from contextlib import suppress
from signoff.cli.main import main

for arguments in json.loads(sys.argv[1]):
    sys.argv = ["signoff", *arguments]
    with suppress(SystemExit):
        main()
    print("\\f", end="", flush=True)
"""


def several(commands: Sequence[Sequence[str]], cwd: Path, **environment: str) -> list[str]:
    """What each of these commands of `signoff` prints. They share a process, as most of its time is its start."""
    plain = {**os.environ, "COLUMNS": "80", "TERM": "dumb", **environment}
    words = [sys.executable, "-c", SEVERAL, json.dumps(commands)]
    done = start.run(words, cwd=cwd, env=plain, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    *told, rest = done.stdout.split("\f")
    assert (len(told), rest) == (len(commands), "")
    return told


async def run(
    built: BuiltToolset, made: Any, *answers: str, rules: Any = (), **options: Any
) -> tuple[ScriptedApprover, list[Any]]:
    """Let a scripted agent make calls of a toolset behind a gate: who was asked, and what came back."""
    ui = ScriptedApprover(list(answers))
    gate = Signoff(list(rules), approver=ui, memory=ApprovalMemory(file=None), **options)
    turns = [*(calls(one) for one in made), {"say": "done"}]
    assert built.toolset is not None
    result = await Agent(ScriptedModel(turns), name="clerk", toolsets=[built.toolset], capabilities=[gate]).run("go")
    return ui, returns(result.all_messages())
