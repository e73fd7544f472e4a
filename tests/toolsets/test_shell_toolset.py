"""The toolset: what only reads runs at once and without a shell, everything else waits, and the world is looked at."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults
from pydantic_ai.messages import ToolReturnPart

from signoff.core.verdict import Effect
from signoff.errors import WrongUse
from signoff.testing import ScriptedModel
from signoff.toolsets import shell_file_ops as shell
from signoff.toolsets.builtin.shell.shell_toolset import ShellToolset

GIT = shutil.which("git")
needs_git = pytest.mark.skipif(GIT is None, reason="needs git")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text("this is a\n")
    (tmp_path / "b.txt").write_text("this is b\n")
    return tmp_path


def toolset(root: Path, **more: Any) -> ShellToolset:
    return shell(root, sandbox="off", **more)


def agent_for(tools: ShellToolset, command: str) -> Agent[None, Any]:
    turns = [{"calls": [{"tool": "shell", "args": {"command": command}}]}, {"say": "{{last}}"}]
    return Agent(ScriptedModel(turns), output_type=[str, DeferredToolRequests], toolsets=[tools])


async def output(tools: ShellToolset, command: str) -> Any:
    return (await agent_for(tools, command).run("go")).output


async def test_what_only_reads_runs_at_once(root: Path) -> None:
    assert await output(toolset(root), "cat *.txt | grep -c this && echo yes") == "2\nyes"
    assert await output(toolset(root), "cat nothing") == (
        "[stderr]\ncat: nothing: No such file or directory\n[exit code 1]"
    )


async def test_everything_else_waits_for_a_person_and_then_runs_in_a_shell(root: Path) -> None:
    tools = toolset(root)
    agent = agent_for(tools, "x=3; echo $((x + 4)) > c.txt; cat c.txt")
    first = await agent.run("go")
    assert isinstance(first.output, DeferredToolRequests)
    [call] = first.output.approvals
    said = first.output.metadata[call.tool_call_id]
    assert said["summary"].startswith("Run: x=3;") and "without a sandbox" in said["note"]
    assert not (root / "c.txt").exists()
    answers = DeferredToolResults(approvals={call.tool_call_id: True})
    second = await agent.run(message_history=first.all_messages(), deferred_tool_results=answers)
    assert second.output == "7"
    returned = [part for message in second.all_messages() for part in message.parts if isinstance(part, ToolReturnPart)]
    assert [part.content for part in returned] == ["7"]


@pytest.mark.parametrize(
    ("command", "needed"),
    [
        ("ls", False),
        ("cat a.txt", False),
        ("rm a.txt", True),
        ("cat a.txt > b.txt", True),
        ("$(ls)", True),
        ("cat 'a", True),
        ("", True),
        ("ls\0", True),
        ("cat ~/.ssh/id_rsa", True),
    ],
)
def test_what_it_declares(root: Path, command: str, needed: bool) -> None:
    tools, args = toolset(root), {"command": command}
    assert (tools.needs_approval("shell", args, None).effect is not Effect.ALLOW) is needed
    labels = set(tools.capability_labels("shell", args, None))
    assert labels and (labels == {"fs.read"} or needed)
    described = tools.describe_approval("shell", args, None)
    assert described["summary"] == f"Run: {command}"
    assert bool(described.get("reason")) is needed
    assert described["note"] == "runs without a sandbox"


def test_a_link_or_a_pattern_that_leads_to_a_secret_asks(root: Path) -> None:
    tools = toolset(root)
    (root / "keys").mkdir()
    (root / "keys" / "id_rsa").write_text("secret")
    (root / "notes.md").symlink_to("keys/id_rsa")
    for command in (
        "cat notes.md",
        "cat *.md",
        "cat keys/*",
        "cd keys && cat *",
        "cd keys && cat ../notes.md",
        "cat < notes.md",
    ):
        found = tools.plan(command)
        assert found.line is None and found.why, command
    assert tools.plan("cat *.txt").line is not None


def git(directory: Path, *words: str) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(directory), "GIT_CONFIG_NOSYSTEM": "1"}
    who = ("-c", "user.name=a", "-c", "user.email=a@b.example")
    subprocess.run([GIT or "git", *who, *words], cwd=directory, env=environment, capture_output=True, check=True)


@pytest.fixture
def repository(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(root / "home"))
    git(root, "init", "-q")
    git(root, "add", "a.txt")
    git(root, "commit", "-q", "-m", "first")
    return root


@needs_git
async def test_git_only_looks(repository: Path) -> None:
    tools = toolset(repository)
    before = (repository / ".git" / "index").read_bytes()
    os.utime(repository / "a.txt", (1, 1))
    assert "b.txt" in await output(tools, "git status --short")
    assert "first" in await output(tools, "git log --oneline | head -3")
    assert (repository / ".git" / "index").read_bytes() == before, "not even the index is refreshed"


@needs_git
async def test_git_in_a_repository_that_runs_programs_asks(repository: Path) -> None:
    tools = toolset(repository)
    (repository / ".gitattributes").write_text("*.txt filter=x\n")
    git(repository, "config", "filter.x.clean", "touch fooled; cat")
    (repository / "sub").mkdir()
    (repository / "a.txt").write_text("changed\n")
    for command in ("git status", "cd sub && git diff", "ls && git -C sub log", "git diff | cat"):
        assert isinstance(await output(tools, command), DeferredToolRequests), command
        assert "filter.x.clean" in tools.plan(command).why, command
    assert not (repository / "fooled").exists()


async def test_limits_are_those_that_were_given(root: Path) -> None:
    tools = toolset(root, timeout=30, max_output=1000)
    text = await output(tools, "seq 1 100000")
    assert len(text) < 1000 and text.startswith("1\n2\n") and text.endswith("100000") and "left out" in text


def test_what_cannot_work_is_said_at_once(root: Path) -> None:
    with pytest.raises(WrongUse, match="not one"):
        shell(root / "gone", sandbox="off")
    with pytest.raises(WrongUse, match="above 0"):
        shell(root, sandbox="off", timeout=0)
