"""`signoff workers` finds the toolsets that a worker names and nobody has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.program import signoff

FILE = """
policy: []
toolsets:
  notes: {use: filesystem_ro}
  odd: {use: notez}
"""
CODE = """
from pathlib import Path
from pydantic_ai.toolsets import FunctionToolset

Path("ran").touch()
TOOLSETS = {"till": FunctionToolset()}
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "workers").mkdir()
    (tmp_path / "signoff.yaml").write_text(FILE)
    (tmp_path / "toolsets.py").write_text(CODE)
    return tmp_path


def worker(shop: Path, toolsets: str) -> Path:
    (shop / "workers" / "clerk.yaml").write_text(f"instructions: Hi.\ntoolsets: {toolsets}\n")
    return shop


@pytest.mark.parametrize(
    ("toolsets", "place", "why"),
    [
        ("[nosuch]", "clerk.yaml:2:12", "there is no toolset `nosuch`"),
        ("[filesystem_ro, notess]", "clerk.yaml:2:27", "did you mean `notes`?"),
        ("[shell]", "clerk.yaml:2:12", "`shell_readonly` runs commands that only read"),
        ("[odd]", "signoff.yaml:5:", "there is no toolset `notez`"),
    ],
)
def test_a_toolset_that_does_not_exist_is_an_error_with_its_place(
    shop: Path, toolsets: str, place: str, why: str
) -> None:
    worker(shop, toolsets)
    listed = signoff("workers", cwd=shop)
    assert listed.returncode == 1
    assert "clerk  wrong: " in listed.stdout and place in listed.stdout and why in listed.stdout
    one = signoff("workers", "clerk", cwd=shop)
    assert one.returncode == 2 and place in one.stderr and why in one.stderr
    [broken] = json.loads(signoff("workers", "--json", cwd=shop).stdout)["broken"]
    assert broken["name"] == "clerk"


@pytest.mark.parametrize(("toolsets", "ran"), [("[filesystem_ro]", False), ("[notes]", False), ("[till, notes]", True)])
def test_toolsets_that_exist_are_fine_and_code_runs_only_if_it_is_needed(
    shop: Path, monkeypatch: pytest.MonkeyPatch, *, toolsets: str, ran: bool
) -> None:
    monkeypatch.chdir(shop)
    listed = signoff("workers", cwd=worker(shop, toolsets))
    assert (listed.returncode, "wrong" in listed.stdout) == (0, False), listed
    assert (shop / "ran").exists() == ran
