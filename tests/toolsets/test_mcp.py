"""MCP servers as toolsets, with a real server: over its pipes, and over HTTP on this machine."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from tests import start
from tests.gate.agents import calls
from tests.toolsets.projects import Project, project, run

from signoff import Signoff
from signoff.errors import MissingExtra, SignoffError, WrongUse
from signoff.testing import ScriptedApprover, ScriptedModel
from signoff.toolsets.catalog import Catalog
from signoff.workers.listing import tools_of
from signoff.workers.project_workers import Workers

__all__ = ["project"]

EXAMPLE = Path(__file__).parents[2] / "examples" / "mcp"
READ = [("list_tickets", {}), ("read_ticket", {"number": "17"})]
CHANGE = [("comment", {"number": "17", "text": "hello"}), ("close_ticket", {"number": "18"})]


@pytest.fixture
def desk(project: Project) -> Project:
    for name in ("server.py", "tickets.json"):
        shutil.copy(EXAMPLE / name, project.directory / name)
    return project


def tickets(desk: Project) -> dict[str, Any]:
    return json.loads((desk.directory / "tickets.json").read_text())


def stdio(desk: Project, more: str = "", rest: str = "") -> Catalog:
    return desk.catalog(f"toolsets: {{tickets: {{use: mcp, config: {{command: [python, server.py]{more}}}{rest}}}}}")


def at(url: str, desk: Project, more: str = "", rest: str = "") -> Catalog:
    return desk.catalog(f'toolsets: {{tickets: {{use: mcp, config: {{url: "{url}"{more}}}{rest}}}}}')


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def served(desk: Project) -> Iterator[str]:
    """The desk over HTTP, in a process of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = start.Process([sys.executable, "server.py", "--http", str(port)], cwd=desk.directory)
    try:
        deadline = time.monotonic() + start.PATIENCE
        while not is_open(port):
            with suppress(subprocess.TimeoutExpired):
                pytest.fail(f"the server ended with {server.wait(0.01)}")
            assert time.monotonic() < deadline, f"the server does not open port {port}"
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        server.terminate()
        server.wait(30)


def child_processes() -> list[bytes]:
    """The command lines of what this process has started and is still there; none where nobody can tell."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    pids = children.read_text().split() if children.exists() else []
    return [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in pids]


async def test_a_server_over_its_pipes_is_started_in_the_projects_directory_and_ends_with_the_run(
    desk: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TICKETS", "/nowhere")  # which it would read: it is given no variable that nobody named
    built = stdio(desk).build("tickets")
    ui, told = await run(built, [*READ, *CHANGE], "approve", "approve", "approve", "deny")
    assert [one.tool_name for one in ui.asked] == [name for name, _ in [*READ, *CHANGE]]
    assert {one.call.toolset for one in ui.asked} == {"tickets"}
    assert "The invoice page is blank" in told[0][1]
    assert tickets(desk)["17"]["comments"][-1] == "hello"
    assert tickets(desk)["18"]["state"] == "open"
    assert not any(b"server.py" in line for line in child_processes())


async def test_a_server_at_an_address_is_spoken_to_over_http(desk: Project) -> None:
    with served(desk) as url:
        catalog = desk.catalog(f"""
            toolsets:
              tickets: {{use: mcp, config: {{url: "{url}", headers: {{X-Key: k}}}}, policy: [{{allow: "*"}}]}}
        """)
        ui, told = await run(catalog.build("tickets"), [*READ, *CHANGE])
    assert ui.asked == []
    assert [outcome for outcome, _ in told] == ["success"] * 4
    assert tickets(desk)["18"]["state"] == "closed"


async def test_annotations_are_claims_that_never_allow_by_themselves(desk: Project) -> None:
    """A server may call anything read-only: `allow: data.read` of the project does not believe it."""
    rules = [{"deny": "data.write"}, {"allow": "data.read"}]
    with served(desk) as url:
        ui, told = await run(at(url, desk).build("tickets"), [*READ, *CHANGE], "deny", "deny", rules=rules)
    assert [one.tool_name for one in ui.asked] == ["list_tickets", "read_ticket"]
    assert ui.asked[0].call.labels == frozenset()
    assert ui.asked[0].call.claimed == {"data.read"}
    assert [outcome for outcome, _ in told] == ["denied"] * 4


async def test_what_reads_is_allowed_where_the_project_says_so(desk: Project) -> None:
    """Where the server is trusted, and by labels of its own, unless the server itself claims more."""
    ways = (
        (", trust_annotations: true", ", policy: [{allow: data.read}]"),
        ("", ', labels: {"*_ticket*": data.read}, policy: [{allow: data.read}]'),
    )
    with served(desk) as url:
        for more, rest in ways:
            ui, told = await run(at(url, desk, more, rest).build("tickets"), [*READ, *CHANGE], "deny", "deny")
            assert [one.tool_name for one in ui.asked] == ["comment", "close_ticket"], more or rest
            assert [outcome for outcome, _ in told] == ["success", "success", "denied", "denied"], more or rest


async def test_a_tool_about_which_nothing_is_said_counts_as_one_that_writes(desk: Project) -> None:
    server = (desk.directory / "server.py").read_text()
    (desk.directory / "server.py").write_text(
        server.replace("annotations=READS", "").replace("annotations=CHANGES", "")
    )
    rules = [{"deny": "data.write"}, {"allow": "*"}]
    with served(desk) as url:
        _, told = await run(at(url, desk).build("tickets"), READ, rules=rules)
        assert [outcome for outcome, _ in told] == ["denied", "denied"]
        labels = ", labels: {list_tickets: data.read}"
        _, told = await run(at(url, desk, rest=labels).build("tickets"), READ, rules=rules)
        assert [outcome for outcome, _ in told] == ["success", "denied"]


async def test_only_the_named_tools_are_offered(desk: Project) -> None:
    with served(desk) as url:
        built = at(url, desk, ", tools: [list_tickets]", ', policy: [{allow: "*"}]').build("tickets")
        _, told = await run(built, [("list_tickets", {})])
        assert told[0][0] == "success"
        agent = Agent(
            ScriptedModel([calls(("delete_ticket", {"number": "17"})), {"say": "{{last}}"}]), toolsets=[built.toolset]
        )
        await agent.run("go")
        assert "17" in tickets(desk)
        with pytest.raises(WrongUse, match="has no tool `list_ticket`\n  did you mean `list_tickets`"):
            await run(at(url, desk, ", tools: [list_ticket]").build("tickets"), [("list_tickets", {})])


@pytest.mark.nightly
async def test_the_variables_that_are_named_reach_the_server(
    desk: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_text('{"1": {"title": "other desk", "state": "open", "comments": []}}')
    monkeypatch.setenv("DESK_FILE", str(elsewhere))
    monkeypatch.setenv("TICKETS", "/nowhere")
    built = stdio(desk, ', env: {TICKETS: "${DESK_FILE}"}', ', policy: [{allow: "*"}]').build("tickets")
    assert built.secrets == (str(elsewhere),)
    _, told = await run(built, [("list_tickets", {})])
    assert "other desk" in told[0][1]


@pytest.mark.nightly
async def test_a_failing_tool_is_an_answer_to_the_model(desk: Project) -> None:
    with served(desk) as url:
        built = at(url, desk, rest=', policy: [{allow: "*"}]').build("tickets")
        _, told = await run(built, [("read_ticket", {"number": "99"}), ("read_ticket", {"number": "98"})])
    assert [outcome for outcome, _ in told] == ["failed", "failed"]


@pytest.mark.parametrize(
    ("config", "what"),
    [
        ('command: [no-such-program-anywhere, "${DESK_TOKEN}"]', r"did not start: .*\n  try its command yourself"),
        ('command: [python, -c, "raise SystemExit(3)"]', "did not start"),
        ('url: "http://127.0.0.1:9/mcp", headers: {X-Key: hush-hush}', "cannot be reached"),
    ],
)
async def test_a_server_that_is_not_there_is_told_with_the_toolsets_name(
    desk: Project, config: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DESK_TOKEN", "hush-hush")
    built = desk.catalog(f"toolsets: {{tickets: {{use: mcp, config: {{timeout: 20, {config}}}}}}}").build("tickets")
    with pytest.raises(SignoffError, match=f"the MCP server of toolset `tickets` {what}") as refused:
        await run(built, [("list_tickets", {})])
    assert "hush" not in str(refused.value)
    assert "hush" not in repr(built.toolset)


def test_without_the_extra_the_error_names_it(desk: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_ai.mcp", None)
    with pytest.raises(MissingExtra, match=r"signoff\[mcp\]"):
        stdio(desk).build("tickets")


async def test_a_server_that_fails_says_so_in_a_line_of_ours(
    desk: Project, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its whole traceback would stand before the two lines that tell what to do."""
    monkeypatch.setenv("DESK_TOKEN", "hush-hush")
    desk.write("broken.py", 'import os\nraise RuntimeError("no desk for " + os.environ["TOKEN"])\n')
    built = desk.catalog(
        'toolsets: {tickets: {use: mcp, config: {command: [python, broken.py], env: {TOKEN: "${DESK_TOKEN}"}}}}'
    ).build("tickets")
    said = "RuntimeError: no desk for ⟦masked 1: declared secret⟧\n  try its command"
    with pytest.raises(WrongUse, match=f"did not start: it said: {said}"):
        await run(built, [("list_tickets", {})])
    assert "Traceback" not in capfd.readouterr().err


async def test_two_servers_with_a_tool_of_one_name_are_told_apart_by_a_prefix(desk: Project) -> None:
    with served(desk) as url:
        entry = f'{{use: mcp, config: {{url: "{url}"}}'
        settings = desk.catalog(
            f"toolsets: {{one: {entry}}}, other: {entry}}}, third: {entry}, prefix: far}}}}"
        ).settings
        for names, clash in ((["one", "other"], True), (["one", "third"], False)):
            desk.write("workers/clerk.yaml", f"instructions: Go.\ntoolsets: {names}\n")
            shop = Workers(settings, store="memory:", model=ScriptedModel([{"say": "done"}]))
            worker = shop.worker("clerk")
            if not clash:
                assert (await worker.agent.run("go", **worker.run_options())).output == "done"
                continue
            with pytest.raises(WrongUse, match=r"`one` and `other` both have a tool `\w+`\n  .*{other: {prefix: …}}"):
                await worker.agent.run("go", **worker.run_options())


async def test_people_are_told_a_servers_name_and_not_what_is_wrapped_around_it() -> None:
    from pydantic_ai.capabilities import MCP

    agent = Agent("test", capabilities=[MCP("https://mcp.example/api")])
    [(name, _)] = (await tools_of(agent, Signoff([]))).unknown
    assert "CapabilityOwned" not in name
    assert "mcp.example" in name or name.startswith("MCPToolset")


@pytest.mark.mission("W1")
async def test_w1_tools_of_an_mcp_server_are_gated_as_they_are(tmp_path: Path) -> None:
    """PydanticAI's own toolset, with nothing of ours around it, and a server in this process."""
    from mcp.server.mcpserver import MCPServer
    from pydantic_ai.mcp import MCPToolset

    server = MCPServer("hammer")

    @server.tool()
    def strike(name: str) -> str:
        (tmp_path / name).touch()
        return "struck"

    turns = [calls(("strike", {"name": "first"})), calls(("strike", {"name": "second"})), {"say": "{{last}}"}]
    gate = Signoff([], approver=ScriptedApprover(["approve", "deny:once is enough"]))
    done = await Agent(ScriptedModel(turns), toolsets=[MCPToolset(server)], capabilities=[gate]).run("go")
    assert [one.name for one in listed(tmp_path)] == ["first"] and "once is enough" in done.output


def listed(directory: Path) -> list[Path]:
    return list(directory.iterdir())
