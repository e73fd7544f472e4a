"""What runs in which case, with the real Claude Code, Codex and Gemini CLI: never a call that was not let through."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from tests import start
from tests.outside.model_api import Script
from tests.outside.real_agents import BYPASS, CODEX, GEMINI, KNOWN, REAL, Real, Session, calls, session
from tests.server.serving import until

from signoff.outside.coding_agents import AGENTS

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(400)]
Sits = Callable[..., Session]
ON_PURPOSE = {
    "claude-code": """CronCreate CronDelete DeferredToolPlaceholder EnterWorktree ExitWorktree ScheduleWakeup
        SendMessage Workflow""",
    "codex": "exec exec_command read_mcp_resource request_permissions wait web_search write_stdin",
    "gemini": "read_mcp_resource",
}
"""Tools without a label that are asked about, or that run no hook."""
MCP = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    told = {}
    if asked["method"] == "initialize":
        info = {"name": "s", "version": "1"}
        version = asked["params"]["protocolVersion"]
        told = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}
    elif asked["method"] == "tools/list":
        names = ["Task", "update_topic", "get_goal", "Bash"]
        told = {"tools": [{"name": one, "description": "d", "inputSchema": {"type": "object"}} for one in names]}
    elif asked["method"] == "tools/call":
        open("served.txt", "w").close()
        told = {"content": [{"type": "text", "text": "served"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": told}), flush=True)
"""


@pytest.fixture(params=REAL.values(), ids=REAL)
def real(request: pytest.FixtureRequest) -> Real:
    return request.param


@pytest.fixture
def sits(real: Real, tmp_path: Path) -> Iterator[Sits]:
    with ExitStack() as stack:

        def begin(*turns: Any, words: tuple[str, ...] = (), trusts: bool = True, **others: Script) -> Session:
            scripts = {**others, "DO IT": turns}
            return stack.enter_context(session(real, tmp_path, scripts, *words, trusts=trusts))

        yield begin


def free(real: Real) -> tuple[str, ...]:
    """Options with which only a hook stands in the way of a call."""
    return BYPASS if real.name == "claude-code" else ()


def asked(one: Session, process: Any) -> dict[str, Any]:
    [request] = until(lambda: one.waits() or process.poll() is not None, "the call is asked about", start.PATIENCE)
    return request


def test_allowed_denied_asked_and_approved(real: Real, sits: Sits) -> None:
    lines = ("cat known.txt", "sudo touch made.txt", "touch made.txt", "touch made.txt")
    one = sits(*(calls(real.shell(line)) for line in lines), words=("--wait", "20s"))
    process = one.begin(*free(real))
    request = asked(one, process)
    assert not one.made()
    one.signoff("approve", request["id"])
    until(one.made, "what was approved ran", start.PATIENCE)
    (one.directory / "made.txt").unlink()
    read, denied, made, again = one.ended(process)
    assert KNOWN in read
    assert "refused by policy: nobody is root here" in denied
    assert "signoff" not in made
    assert "nobody answered" in again and not one.made(), "an approval is for one call"
    record = one.signoff("audit", "log")
    assert [word in record for word in ("allowed", "denied", "asked", "claimed", "ran")] == [True] * 5


def test_denied_by_a_person_and_the_model_reads_why(real: Real, sits: Sits) -> None:
    one = sits(calls(real.shell("touch made.txt")))
    process = one.begin(*free(real))
    one.signoff("deny", asked(one, process)["id"], "--note", "not on a Friday")
    [told] = one.ended(process)
    assert "refused by ana: not on a Friday" in told and not one.made()


def test_the_card_says_which_session_asks_where_what_for_and_what_its_model_says(real: Real, sits: Sits) -> None:
    words = "The file is missing, so I make it."
    one = sits(calls(real.shell("cat known.txt"), say="I read first."), calls(real.shell("touch made.txt"), say=words))
    process = one.begin(*free(real))
    request = asked(one, process)
    shown = json.loads(one.signoff("show", request["id"], "--json"))["card"]
    assert (shown["task"], shown["claim"]) == ("“DO IT” (for ana)", words)
    session, _, directory = shown["session"].partition(" in ")
    assert re.fullmatch(r"[0-9a-f-]{36}", session) and directory == str(one.directory)
    one.signoff("deny", request["id"])
    one.ended(process)


def test_approved_with_other_arguments(real: Real, sits: Sits) -> None:
    one = sits(calls(real.shell("touch made.txt")))
    process = one.begin(*free(real))
    other = {"command": "touch other.txt"}
    one.signoff("approve", asked(one, process)["id"], "--args", json.dumps(other))
    [told] = one.ended(process)
    assert not one.made() and one.made("other.txt") is AGENTS[real.name].takes_edits
    heard = told if real is GEMINI else json.dumps(one.api.asked[-1])
    assert "touch other.txt" in heard and "ana" in heard, "the model knows what ran instead, or what to send"


def test_the_agent_is_gone_while_a_call_waits(real: Real, sits: Sits) -> None:
    one = sits(calls(real.shell("touch made.txt")))
    process = one.begin(*free(real))
    request = asked(one, process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    start.run([*start.SIGNOFF, "approve", request["id"]], cwd=one.directory, env=one.env, capture_output=True)
    assert not one.made()
    assert " ran " not in one.signoff("audit", "log")


def test_the_shell_of_the_hook_is_killed(real: Real, sits: Sits) -> None:
    """Nothing of signoff is left to refuse the call then: the documentation says so."""
    one = sits(calls(real.shell("touch made.txt")))
    process = one.begin(*free(real))
    request = asked(one, process)
    [shell] = shells_of(one)
    os.kill(shell, signal.SIGKILL)
    one.ended(process)
    assert one.made()
    assert one.waits() == [] and "cancelled" in one.signoff("show", request["id"]), "nobody is asked any more"


def shells_of(one: Session) -> list[int]:
    """The shells that run the project's hook."""
    found: list[int] = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            line = (place / "cmdline").read_bytes()
            if b"|| exit 2" in line and str(one.directory).encode() in line:
                found.append(int(place.name))
    return found


def test_the_server_is_gone(real: Real, sits: Sits, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("soi_x\n")
    token.chmod(0o600)
    given = ("--server", "http://127.0.0.1:1", "--token-file", str(token))
    one = sits(calls(real.shell("touch made.txt")), calls(real.shell("cat known.txt")), words=given)
    told, read = one.run(*free(real))
    assert "cannot be reached" in told and not one.made()
    assert KNOWN in read, "what policy here allows needs no server"


def test_the_policy_is_broken_and_the_interpreter_is_gone(real: Real, sits: Sits) -> None:
    one = sits(calls(real.shell("touch made.txt")), calls(real.shell("cat known.txt")))
    (one.directory / "signoff.yaml").write_text("policy: [{alow: x}]\n")
    told = one.run(*free(real))
    assert not one.made() and len(told) == 2 and KNOWN not in told[1]
    assert "signoff.yaml" in told[0] and " /" in told[0] + " /"


def test_a_tool_of_an_mcp_server_is_asked_about_whatever_it_is_called(real: Real, sits: Sits) -> None:
    names = {"claude-code": "mcp__srv__Task", "codex": "mcp__srv::get_goal", "gemini": "mcp_srv_update_topic"}
    one = sits(calls((names[real.name], {})), words=("--wait", "5s"))
    (one.directory / "server.py").write_text(MCP)
    server = {"command": sys.executable, "args": [str(one.directory / "server.py")]}
    more: tuple[str, ...] = ()
    if real is CODEX:
        with (one.home / ".codex" / "config.toml").open("a") as settings:
            settings.write(
                f'\n[mcp_servers.srv]\ncommand = "{server["command"]}"\nargs = {json.dumps(server["args"])}\n'
            )
    elif real is GEMINI:
        file = one.home / ".gemini" / "settings.json"
        file.write_text(json.dumps({**json.loads(file.read_text()), "mcpServers": {"srv": server}}))
    else:
        more = ("--mcp-config", json.dumps({"mcpServers": {"srv": server}}))
    [told] = one.run(*free(real), *more)
    assert "nobody answered" in told and not one.made("served.txt")


def test_the_tools_of_this_version_are_known(
    real: Real, sits: Sits, capsys: pytest.CaptureFixture[str], record_property: Callable[[str, object], None]
) -> None:
    """New ones are printed: whoever reads it decides whether they are the agent's own bookkeeping."""
    one = sits(calls(real.shell("cat known.txt")))
    one.run(*free(real))
    offered = {name.removeprefix("functions::").replace("::", "") for name in one.api.tools()}
    host = AGENTS[real.name]
    short = {name.removeprefix("multi_agent_v1") for name in offered}
    known = {*host.labels, *host.bookkeeping, *ON_PURPOSE[real.name].split()}
    strange = sorted(name for name in offered if name not in known and name.removeprefix("multi_agent_v1") not in known)
    record_property("unknown tools", " ".join(strange))
    if strange:
        with capsys.disabled():
            print(f"\n{host.title} has tools that signoff does not know: {', '.join(strange)}")
    assert short & known, "it says which tools it has"


def test_a_call_of_an_agent_inside_the_agent_is_judged_too(real: Real, sits: Sits) -> None:
    inner = {
        "claude-code": ("Agent", {"description": "a", "prompt": "INNER PART", "subagent_type": "general-purpose"}),
        "codex": ("multi_agent_v1::spawn_agent", {"message": "INNER PART", "agent_type": "default"}),
        "gemini": ("invoke_agent", {"agent_name": "generalist", "prompt": "INNER PART"}),
    }
    waits = [calls(("exec_command", {"cmd": "sleep 8"}))] if real is CODEX else []
    one = sits(calls(inner[real.name]), *waits, **{"INNER PART": [calls(real.shell("sudo touch made.txt"))]})
    if waits:
        policy = one.directory / "signoff.yaml"
        policy.write_text(policy.read_text().replace("  - deny", "  - allow: {command: 'sleep *'}\n  - deny", 1))
    told = one.run(*free(real))
    assert any("nobody is root here" in text for text in told) and not one.made()


# --- Codex ---


def codex(tmp_path: Path, *turns: Any, trusts: bool = True) -> Any:
    return session(CODEX, tmp_path, {"DO IT": turns}, "--wait", "5s", trusts=trusts)


def test_codex_types_without_a_hook_so_a_pager_is_asked_about(tmp_path: Path) -> None:
    def types(told: list[str]) -> Any:
        found = re.search(r"session ID (\d+)", " ".join(told))
        session_id = int(found[1]) if found else 0
        return calls(("write_stdin", {"session_id": session_id, "chars": "\n!touch made.txt\n", "yield_time_ms": 2000}))

    paged = calls(("exec_command", {"cmd": "less known.txt", "tty": True, "yield_time_ms": 1500}))
    with codex(tmp_path, paged, types) as one:
        told = one.run()
        assert not one.made()
        assert "nobody answered" in told[0]
        (one.directory / "signoff.yaml").write_text('policy: [{allow: "*"}]\n')
        one.api.asked.clear()
        one.run()
        assert not one.made(), "whatever rules allow"


def test_codex_skips_a_hook_that_it_does_not_trust_and_the_status_says_so(tmp_path: Path) -> None:
    with codex(tmp_path, calls(CODEX.shell("touch made.txt")), trusts=False) as one:
        said = one.signoff("hook", "status", code=1)
        assert "installed, not trusted: every call runs unjudged" in said
        assert '"skipped": true' in one.signoff("hook", "status", "--json", code=1)
        without = {**one.env, "PATH": "/usr/bin:/bin"}
        done = start.run(
            [*start.SIGNOFF, "hook", "status"], cwd=one.directory, env=without, capture_output=True, text=True
        )
        assert "installed, not trusted" in done.stdout, "its settings tell as much without the program"
        one.run()
        assert one.made(), "nothing can be done about it from here"


def test_codex_runs_a_hook_that_it_trusts_and_the_status_says_so(tmp_path: Path) -> None:
    with codex(tmp_path, calls(CODEX.shell("touch made.txt"))) as one:
        assert "not trusted" not in one.signoff("hook", "status")
        one.signoff("hook", "install", "codex", "--project", "--yes", "--wait", "9s")
        assert "not trusted" in one.signoff("hook", "status", code=1), "trust is in the hook as it was"


def test_a_model_that_writes_javascript_runs_the_hook_for_each_of_its_calls(tmp_path: Path) -> None:
    program = 'text(JSON.stringify(await tools.exec_command({cmd: "touch made.txt"})))'
    with codex(tmp_path, calls(("functions::exec", program))) as one:
        [told] = one.run("-m", "gpt-6-astra")
        assert "nobody answered" in told and not one.made()


# --- Gemini CLI ---


def test_gemini_does_not_work_in_a_directory_that_is_not_trusted(tmp_path: Path) -> None:
    with session(GEMINI, tmp_path, {"DO IT": [calls(GEMINI.shell("touch made.txt"))]}, trusts=False) as one:
        process = one.begin()
        process.communicate(timeout=start.PATIENCE)
        assert process.returncode != 0 and not one.made()
