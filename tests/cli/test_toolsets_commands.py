"""`signoff toolsets`: names, where they come from, tools and their effect; what is broken is named."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.cli.program import refused, signoff
from tests.cli.wording import Wording

MCP = Path(__file__).parents[2] / "examples" / "mcp"
PROJECT = """\
toolsets:
  files: {use: filesystem_rw, policy: [{allow: write_file}, {deny: delete_file}]}
  mine: {use: look, labels: {look: data.read}, policy: [{allow: data.read}]}
  web: {use: native, config: {kind: web_search}, policy: [{allow: web_search}]}
  broken: {use: "plugin:Db", config: {dsn: "${SECRET_DSN}"}}
  raises: {use: "plugin:raises", config: {dsn: "${SECRET_DSN}"}}
  refused: {use: "other:Db"}
plugins: {allow: [plugin]}
policy:
  - {ask: edit_file}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "signoff.yaml").write_text(PROJECT)
    (tmp_path / "toolsets.py").write_text(
        "from pydantic_ai.toolsets import FunctionToolset\n\n\n"
        "def look(deep: bool, where: str = '.') -> str:\n    'Look around.\\n\\n    And about.'\n    return ''\n\n\n"
        "TOOLSETS = {'look': FunctionToolset([look])}\n"
    )
    (tmp_path / "plugin.py").write_text("class Db:\n    pass\n\n\ndef raises(dsn):\n    raise ValueError(dsn)\n")
    (tmp_path / "workers").mkdir()
    (tmp_path / "workers" / "clerk.yaml").write_text(
        "instructions: Work.\ntoolsets: [files, mine]\npolicy: [{deny: write_file}]\n"
    )
    return tmp_path


def listed(done: Any) -> dict[str, Any]:
    assert "Traceback" not in done.stderr, done.stderr
    return {one["name"]: one for one in json.loads(done.stdout)["toolsets"]}


def effects(row: dict[str, Any]) -> dict[str, str]:
    return {tool["tool"]: tool["effect"] for tool in row["tools"]}


@pytest.mark.mission("C1")
def test_c1_names_come_with_where_they_are_from_their_tools_and_the_effect_of_each(project: Path) -> None:
    done = signoff("toolsets", "--json", cwd=project, SECRET_DSN="hush-hush")
    assert done.returncode == 0, done.stderr
    found = listed(done)
    assert found["files"]["origin"] == "signoff.yaml:2, use: filesystem_rw"
    assert found["look"]["origin"] == "toolsets.py"
    assert found["shell_readonly"]["origin"] == "built in"
    assert found["files"]["used_by"] == ["clerk"]
    assert effects(found["files"]) == {
        "list_files": "allow",
        "read_file": "allow",
        "search_files": "allow",
        "write_file": "allow",
        "edit_file": "ask",
        "move_file": "ask",
        "delete_file": "deny",
    }
    assert effects(found["mine"]) == {"look": "allow"}
    assert effects(found["look"]) == {"look": "ask"}
    assert effects(found["web"]) == {"web_search": "allow"}
    assert "hush" not in done.stdout + done.stderr


def test_what_is_broken_is_named_and_fails_only_where_a_worker_uses_it(project: Path, wording: Wording) -> None:
    done = signoff("toolsets", cwd=project, SECRET_DSN="hush-hush")
    assert done.returncode == 0, done.stderr
    assert done.stdout == wording()
    assert "hush" not in done.stdout + done.stderr
    before = done.stdout.splitlines()
    for name in ("broken", "raises", "refused", "fils"):
        (project / "workers" / "clerk.yaml").write_text(f"instructions: Work.\ntoolsets: [files, {name}]\n")
        done = signoff("toolsets", cwd=project, SECRET_DSN="hush-hush")
        assert done.returncode == 1, name
        assert "used by clerk" in done.stdout
    assert "\n".join(line for line in done.stdout.splitlines() if line not in before) == wording()


def test_one_toolset_whole(project: Path, wording: Wording) -> None:
    done = signoff("toolsets", "show", "mine", cwd=project)
    assert done.returncode == 0, done.stderr
    assert done.stdout == wording()
    told = json.loads(signoff("toolsets", "show", "files", "--json", cwd=project).stdout)
    assert told["config_schema"]["properties"]["max_bytes"]["type"] == "integer"
    assert {"files/rule-1", "filesystem_rw/rule-1"} <= {rule["id"] for rule in told["rules"]}
    read = next(tool for tool in told["tools"] if tool["tool"] == "read_file")
    assert read["arguments"][0] == "path"
    assert read["labels"] == ["fs.read"]


def test_one_that_lists_by_the_run_shows_what_it_lists_now(project: Path) -> None:
    (project / "toolsets.py").write_text(
        "from pydantic_ai.toolsets import FunctionToolset\n\n\n"
        "def look(deep: bool) -> str:\n    'Look around.'\n    return ''\n\n\n"
        "TOOLSETS = {'look': FunctionToolset([look]).filtered(lambda ctx, tool: not ctx.deps)}\n"
    )
    done = signoff("toolsets", "show", "look", cwd=project)
    assert done.returncode == 0, done.stderr
    assert "look(deep)" in done.stdout and "Look around." in done.stdout
    assert "its tools are decided in each run" in done.stdout


def test_one_that_is_broken_still_says_what_it_takes(project: Path, wording: Wording) -> None:
    done = signoff("toolsets", "show", "sql", cwd=project)
    assert done.returncode == 1
    assert done.stdout == wording()
    done = signoff("toolsets", "show", "web", cwd=project)
    assert done.returncode == 0, done.stderr
    assert "allowed_domains: list of text" in done.stdout
    assert refused(signoff("toolsets", "show", "fils", cwd=project)) == wording()


def test_a_built_in_that_has_no_entry_yet_is_not_broken(project: Path) -> None:
    needs = "needs an entry: toolsets: {sql: {use: sql, config: {url: …}}}"
    told = signoff("toolsets", cwd=project, SECRET_DSN="x").stdout
    assert f"sql  built in\n  {needs}\n" in told and "config.url" not in told
    row = listed(signoff("toolsets", "--json", cwd=project, SECRET_DSN="x"))["sql"]
    assert (row["unknown"], row["error"]) == (needs, None)
    (project / "workers" / "clerk.yaml").write_text("instructions: Work.\ntoolsets: [sql]\n")
    done = signoff("toolsets", cwd=project, SECRET_DSN="x")
    assert done.returncode == 1 and "`config.url` is missing" in done.stdout, "a worker cannot use it like that"


def test_rows_have_no_blanks_at_their_end(project: Path) -> None:
    lines = signoff("toolsets", cwd=project, SECRET_DSN="x").stdout.splitlines()
    assert "  ask         look(deep=false)" in lines
    assert [line for line in lines if line != line.rstrip()] == []


def test_mcp_servers_are_started_only_when_asked_to(tmp_path: Path) -> None:
    here = tmp_path / "mcp"
    shutil.copytree(MCP, here)
    shutil.copy(Path(__file__).with_name("tickets_server.py"), here / "server.py")
    done = signoff("toolsets", cwd=here)
    assert done.returncode == 0, done.stderr
    assert "--connect" in done.stdout
    assert "list_tickets" not in done.stdout
    found = listed(signoff("toolsets", "--connect", "--json", cwd=here))
    assert effects(found["tickets"]) == {
        "list_tickets": "allow",
        "read_ticket": "allow",
        "comment": "ask",
        "close_ticket": "ask",
        "delete_ticket": "deny",
    }
    assert {tool["kind"] for tool in found["tickets"]["tools"]} == {"mcp"}
    done = signoff("toolsets", "show", "tickets", "--connect", cwd=here)
    labels = "labels of this call: data.write (says its server)"
    assert f"comment(number, text)\n  Add a comment to a ticket.\n  {labels}" in done.stdout


@pytest.mark.nightly  # tests/examples runs it daily, with a person who approves one call and denies another
@pytest.mark.parametrize(("mode", "state", "comments"), [("auto_deny", "open", 1), ("auto_approve", "closed", 2)])
def test_the_example_runs_with_its_server(tmp_path: Path, mode: str, state: str, comments: int) -> None:
    here = tmp_path / "mcp"
    shutil.copytree(MCP, here)
    done = signoff("run", "desk", "go", "--model", "script:script.yaml", "--mode", mode, cwd=here)
    assert done.returncode == 0, done.stderr
    tickets = json.loads((here / "tickets.json").read_text())
    assert tickets["18"]["state"] == state
    assert len(tickets["17"]["comments"]) == comments
    assert "tickets are closed here and never deleted" in done.stdout
