"""`signoff run` with an agent in Python, and what a person is told who uses it wrongly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.program import refused, signoff
from tests.cli.wording import NOT_YAML, Wording

AGENT = """
from pathlib import Path
from pydantic_ai import Agent, DeferredToolRequests
from signoff import ApprovalMemory, Signoff

def look() -> str:
    return "seen"

def touch(name: str) -> str:
    Path(name).touch()
    return f"touched {name}"

def broken() -> str:
    raise RuntimeError("out of order")

agent = Agent("test", name="hand", tools=[look, touch, broken])
bare = Agent(tools=[look])
gated = Agent("test", tools=[touch], capabilities=[Signoff([{"deny": "touch"}], memory=ApprovalMemory(None))])
stuck = Agent("test", tools=[touch], capabilities=[Signoff([], wait="suspend", memory=ApprovalMemory(None))])
strict = Agent("test", tools=[touch], capabilities=[
    Signoff([{"deny": "touch"}], on_denied="raise", memory=ApprovalMemory(None))
])
number = 3
"""
SCRIPT = """
- calls: [{tool: look}, {tool: touch, args: {name: a.txt}}]
- say: "{{last}}"
"""
POLICY = "policy:\n  - {allow: look}\n  - {allow: {tool: touch, args: {name: a.txt}}}\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(AGENT)
    (tmp_path / "turns.yaml").write_text(SCRIPT)
    (tmp_path / "signoff.yaml").write_text(POLICY)
    return tmp_path


def test_an_agent_runs_under_the_policy_here(project: Path) -> None:
    done = signoff("run", "shop:agent", "go", "--model", "script:turns.yaml", cwd=project)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "seen\ntouched a.txt\n"
    assert (project / "a.txt").exists()
    assert "allowed" in done.stderr
    assert 'touch(name="a.txt")' in done.stderr


def test_without_a_terminal_what_must_be_asked_is_denied(project: Path) -> None:
    (project / "signoff.yaml").write_text("policy:\n  - {allow: look}\n")
    done = signoff("run", "shop:agent", "go", "--model", "script:turns.yaml", cwd=project)
    assert done.returncode == 0
    assert not (project / "a.txt").exists()
    assert "no terminal to ask at" in done.stdout


def test_or_the_run_parks_with_exit_code_3(project: Path) -> None:
    (project / "signoff.yaml").write_text("policy:\n  - {allow: look}\n")
    run = ("run", "shop:agent", "go", "--model", "script:turns.yaml", "--unattended", "park")
    done = signoff(*run, cwd=project)
    assert done.returncode == 3
    assert done.stdout == ""
    assert not (project / "a.txt").exists()
    assert 'touch(name="a.txt")' in done.stderr
    rows = [json.loads(line) for line in signoff(*run, "--json", cwd=project).stdout.splitlines()]
    assert [row.get("event") for row in rows] == ["started", "allowed", "ran", "asked", None]
    assert rows[-1]["waiting"][0]["summary"] == 'touch(name="a.txt")'


def test_json_is_one_object_a_line(project: Path) -> None:
    done = signoff("run", "shop:agent", "--model", "script:turns.yaml", "--json", cwd=project, given="go")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert rows[0] == {"event": "started", "agent": "shop:agent", "run": rows[-1]["run"]}
    assert sorted(row.get("event", "") for row in rows[1:-1]) == ["allowed", "allowed", "ran", "ran"]
    assert rows[-1]["output"] == "seen\ntouched a.txt" and rows[-1]["run"]
    assert (rows[-1]["usage"]["requests"], rows[-1]["usage"]["cost_usd"]) == (2, None)


def test_no_policy_asks_about_everything(project: Path) -> None:
    (project / "signoff.yaml").unlink()
    done = signoff("run", "shop:agent", "go", "--model", "script:turns.yaml", cwd=project)
    assert done.stdout.count("permission_denied") == 2


def test_modes_never_turn_a_deny_around(project: Path) -> None:
    (project / "signoff.yaml").write_text("policy:\n  - {deny: touch}\n")
    done = signoff("run", "shop:agent", "go", "--model", "script:turns.yaml", "--mode", "auto_approve", cwd=project)
    assert done.returncode == 0
    assert "seen" in done.stdout
    assert not (project / "a.txt").exists()


def test_a_denial_that_is_raised_is_exit_code_4(project: Path) -> None:
    (project / "turns.yaml").write_text("- calls: [{tool: touch, args: {name: a.txt}}]\n")
    done = signoff("run", "shop:strict", "go", "--model", "script:turns.yaml", cwd=project)
    assert done.returncode == 4 and "Traceback" not in done.stderr
    assert "touch was refused by policy" in done.stderr and not (project / "a.txt").exists()


def test_an_agent_that_fails_is_one_message_and_exit_code_1(project: Path) -> None:
    (project / "turns.yaml").write_text("- calls: [{tool: broken}]\n- say: done\n")
    run = ("run", "shop:agent", "go", "--model", "script:turns.yaml", "--mode", "auto_approve")
    done = signoff(*run, cwd=project)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "the agent failed: RuntimeError: out of order" in done.stderr
    assert "Traceback" in signoff(*run, "--traceback", cwd=project).stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["nowhere:agent", "go"],
        ["shop", "go"],
        ["shop:agnet", "go"],
        ["shop:number", "go"],
        ["broken_import:agent", "go"],
        ["broken_code:agent", "go"],
        ["shop:bare", "go"],
        ["shop:agent", "go", "--model", "nobody:x"],
        ["shop:agent", "go", "--model", "script:none.yaml"],
        ["shop:agent", "go", "--model", "script:short.yaml"],
        ["shop:agent", "go", "--policy", "none.yaml"],
        ["shop:agent", "go", "--policy", "broken.yaml"],
        ["shop:agent", "go", "--policy", "unknown.yaml"],
        ["shop:gated", "go", "--policy", "signoff.yaml"],
        ["shop:stuck", "go", "--model", "script:turns.yaml"],
    ],
    ids=" ".join,
)
def test_wrong_use_is_one_clear_message(project: Path, arguments: list[str], wording: Wording) -> None:
    (project / "broken_import.py").write_text("import missing_thing\n")
    (project / "broken_code.py").write_text("1 / 0\n")
    (project / "broken.yaml").write_text("policy:\n  - {allow: [}\n")
    (project / "unknown.yaml").write_text("policy:\n  - {allow: look, raeson: x}\n")
    (project / "short.yaml").write_text("- calls: [{tool: look}]\n")
    before = {file.name for file in project.iterdir()}
    assert refused(signoff("run", *arguments, cwd=project)) == wording(parser=NOT_YAML)
    assert {file.name for file in project.iterdir()} - before <= {"__pycache__", ".signoff"}


def test_an_unknown_command_suggests_one(wording: Wording) -> None:
    assert refused(signoff("dmeo")) == wording()
    assert refused(signoff("xyzzy")) == wording()


def test_help_shows_every_command_and_an_example() -> None:
    done = signoff("--help")
    assert done.returncode == 0
    for name in ("demo", "init", "policy", "run"):
        assert f"\n  {name} " in done.stdout
        assert "Example" in signoff(name, "--help").stdout or name == "policy"
    assert signoff("--version").stdout == "signoff, version 0.1.0\n"
