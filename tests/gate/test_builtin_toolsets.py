"""The built-in toolsets behind the gate: what runs unasked, what is asked about, and how each is run."""

from __future__ import annotations

import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, DeferredToolRequests, RunContext
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset
from tests.gate.agents import calls, returns

from signoff import ApprovalMemory, Signoff
from signoff.testing import ScriptedApprover, ScriptedModel
from signoff.toolsets import filesystem_ro, filesystem_rw, shell_file_ops, shell_readonly, sql


@pytest.fixture
def root(tmp_path: Path) -> Path:
    directory = tmp_path / "work"
    directory.mkdir()
    (directory / "a.txt").write_text("b\na\n")
    (directory / ".env").write_text("TOKEN=1\n")
    return directory


async def run(
    toolset: AbstractToolset[Any], made: list[tuple[str, dict[str, Any]]], *answers: str, rules: Any = ()
) -> tuple[ScriptedApprover, list[Any]]:
    """One call a turn, through the gate. Who was asked, and (outcome, content) of each call."""
    ui = ScriptedApprover(list(answers))
    gate = Signoff(list(rules), approver=ui, memory=ApprovalMemory(file=None))
    turns = [*(calls(one) for one in made), {"say": "done"}]
    result = await Agent(ScriptedModel(turns), name="worker", toolsets=[toolset], capabilities=[gate]).run("go")
    return ui, returns(result.all_messages())


def shells(*commands: str) -> list[tuple[str, dict[str, Any]]]:
    return [("shell", {"command": command}) for command in commands]


# --- shell ---


@pytest.mark.mission("C3", "P8")
async def test_c3_p8_reading_runs_unasked_and_writing_is_asked_about(root: Path) -> None:
    ui, told = await run(
        shell_file_ops(root, sandbox="off"),
        shells("sort a.txt", "sort -o a.txt a.txt", "echo $((1 + 1)) > c.txt; cat c.txt"),
        "deny",
        "approve",
    )
    assert [request.args["command"] for request in ui.asked] == [
        "sort -o a.txt a.txt",
        "echo $((1 + 1)) > c.txt; cat c.txt",
    ]
    assert "`sort -o` writes" in ui.asked[0].verdict.reason  # type: ignore[union-attr]
    assert [content for _, content in told[:1]] == ["a\nb"]
    assert (root / "a.txt").read_text() == "b\na\n"
    assert told[2][1] == "2"


@pytest.mark.mission("P8")
async def test_p8_a_shell_that_only_reads_denies_writes_and_tells_the_model(root: Path) -> None:
    ui, [(outcome, content)] = await run(shell_readonly(root, sandbox="off"), shells("rm a.txt"))
    assert ui.asked == []
    assert outcome == "denied"
    assert "this shell only reads: `rm` " in content


async def test_a_rule_of_the_users_allows_a_command_that_then_runs_as_its_words(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "mytest"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nprintf "%s;" "$@" > ran.txt\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (root / "mytest").write_text("#!/bin/sh\necho planted > planted.txt\n")
    (root / "mytest").chmod(0o755)
    monkeypatch.setenv("PATH", f"{root}:{program.parent}:/usr/bin:/bin")
    rules = [{"allow": {"tool": "shell", "command": ["read-only", "mytest *", "mytest 'a b' ';'"]}}]
    ui, told = await run(shell_file_ops(root, sandbox="off"), shells("mytest 'a b' ';' && cat ran.txt"), rules=rules)
    assert ui.asked == []
    assert told[0][1] == "a b;;;"
    assert not (root / "planted.txt").exists()


async def test_a_denied_command_is_denied_behind_a_wrapper(root: Path) -> None:
    rules = [{"deny": {"command": "touch"}, "reason": "nothing new here"}, {"allow": "shell"}]
    _, told = await run(
        shell_file_ops(root, sandbox="off"), shells("nice bash -c 'touch x'", "echo $((2+2))"), rules=rules
    )
    assert [outcome for outcome, _ in told] == ["denied", "success"]
    assert told[1][1] == "4"
    assert not (root / "x").exists()


async def test_an_answer_remembered_lets_the_same_command_run_in_a_shell_again(root: Path) -> None:
    ui, told = await run(shell_file_ops(root, sandbox="off"), shells("echo x >> log", "echo x >> log"), "session")
    assert len(ui.asked) == 1
    assert (root / "log").read_text() == "x\nx\n"
    assert len(told) == 2


async def test_a_link_that_leads_to_a_secret_asks(root: Path) -> None:
    (root / "notes").symlink_to(".env")
    ui, told = await run(shell_file_ops(root, sandbox="off"), shells("cat notes"), "deny")
    assert len(ui.asked) == 1
    assert "TOKEN" not in str(told)


async def test_an_approval_of_an_outer_call_is_none_for_the_shell_of_an_inner_agent_without_a_gate(root: Path) -> None:
    inner = Agent(
        ScriptedModel([calls(("shell", {"command": "touch made"})), {"say": "{{last}}"}]),
        toolsets=[shell_file_ops(root, sandbox="off")],
        output_type=[str, DeferredToolRequests],
    )
    tools: FunctionToolset[Any] = FunctionToolset()

    @tools.tool
    async def delegate(ctx: RunContext[Any]) -> str:
        """Ask another agent."""
        return type((await inner.run("go")).output).__name__

    _, told = await run(tools, [("delegate", {})], "approve")
    assert told[0][1] == "DeferredToolRequests"
    assert not (root / "made").exists()


# --- files ---


@pytest.mark.mission("C3")
async def test_c3_files_are_read_unasked_and_changed_only_with_an_answer(root: Path) -> None:
    made: list[tuple[str, dict[str, Any]]] = [
        ("read_file", {"path": "a.txt"}),
        ("read_file", {"path": ".env"}),
        ("read_file", {"path": "../x"}),
        ("write_file", {"path": "a.txt", "content": "c\n"}),
        ("list_files", {}),
    ]
    ui, told = await run(filesystem_rw(root), made, "deny", "approve")
    assert [request.tool_name for request in ui.asked] == ["read_file", "write_file"]
    assert "-b" in ui.asked[1].metadata["diff"]
    assert [outcome for outcome, _ in told] == ["success", "denied", "denied", "success", "success"]
    assert (root / "a.txt").read_text() == "c\n"


@pytest.mark.mission("C3")
async def test_c3_read_only_files_have_no_tool_that_writes_and_refuse_one_anyway(root: Path) -> None:
    tools = filesystem_ro(root)
    assert sorted(tools.tools) == ["list_files", "read_file", "search_files"]
    assert tools.needs_approval("write_file", {"path": "a.txt", "content": ""}, None).effect == "deny"


async def test_a_project_may_allow_writes_but_not_those_that_get_run_later(root: Path) -> None:
    made: list[tuple[str, dict[str, Any]]] = [
        ("write_file", {"path": "n.txt", "content": "x"}),
        ("write_file", {"path": "Makefile", "content": "all:\n\trm -rf /\n"}),
    ]
    ui, _ = await run(filesystem_rw(root), made, "deny", rules=[{"allow": {"tool": "write_file"}}])
    assert [request.args["path"] for request in ui.asked] == ["Makefile"]
    assert (root / "n.txt").exists()
    assert not (root / "Makefile").exists()


# --- SQL ---


@pytest.mark.mission("P10")
async def test_p10_reads_run_and_writes_ask_by_what_the_sql_does(root: Path) -> None:
    file = root / "shop.db"
    with sqlite3.connect(file) as database:
        database.execute("CREATE TABLE t (a)")
        database.execute("INSERT INTO t VALUES (1), (2)")
    made: list[tuple[str, dict[str, Any]]] = [
        ("query", {"sql": "SELECT sum(a) AS total FROM t"}),
        ("query", {"sql": "WITH x AS (SELECT 1) DELETE FROM t"}),
        ("execute", {"sql": "DELETE FROM t WHERE a = 1"}),
    ]
    ui, told = await run(sql(f"sqlite:{file}"), made, "approve")
    assert [request.tool_name for request in ui.asked] == ["execute"]
    assert [outcome for outcome, _ in told] == ["success", "denied", "success"]
    with sqlite3.connect(file) as database:
        assert database.execute("SELECT a FROM t").fetchall() == [(2,)]
