"""A hook whose agent is gone: its request is withdrawn within seconds, whoever looks, and no call stays in doubt."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import start
from tests.outside.test_hook import POLICY, Agent
from tests.server.serving import until

from signoff.wiring import hook_launcher

RARE = (signal.SIGINT, signal.SIGHUP)
GONE = "nobody waits for it any more"


@pytest.fixture(params=["here", "resident"])
def agent(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Agent]:
    """Hooks that work their answers out themselves, and hooks that a resident helper answers."""
    wide = {"COLUMNS": "200"}
    made = Agent(tmp_path / "project", tmp_path / "home", wide)
    for one in (made.directory, made.home):
        one.mkdir()
    (made.directory / "signoff.yaml").write_text(POLICY)
    if request.param == "here":
        yield made
        return
    with tempfile.TemporaryDirectory(dir="/tmp") as run:  # the path of a socket has to be short
        made.environment = {**wide, "XDG_RUNTIME_DIR": run, "SIGNOFF_HOOK_RESIDENT": "1"}
        with start.Process([*start.SIGNOFF, "hook", "serve"], env=made.env, cwd=made.directory) as process:
            until(lambda: Path(run, "signoff", "hook", "socket").exists(), "the helper listens")
            yield made
            process.kill()


def asks(agent: Agent) -> tuple[start.Process, str]:
    """A hook that waits, and its request."""
    process = agent.begin(agent.event("Write", {"file_path": "a", "content": "x"}))
    [request] = until(agent.waits, "the call is asked about")
    return process, request["id"]


def late(agent: Agent, request: str) -> str:
    """What somebody is told who approves it now."""
    line = [*start.SIGNOFF, "approve", request]
    done = start.run(line, cwd=agent.directory, env=agent.env, capture_output=True, text=True)
    assert done.returncode != 0
    return done.stdout + done.stderr


def is_withdrawn(agent: Agent, request: str) -> None:
    until(lambda: not agent.waits(), "the request is withdrawn", 20)
    assert GONE in agent.signoff("show", request)
    print(late(agent, request), agent.signoff("show", request), agent.signoff("audit", "log"))
    assert GONE in late(agent, request)
    assert agent.waits() == [], "nobody is asked what became of the call"


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, signal.SIGKILL, *(pytest.param(one, marks=pytest.mark.nightly) for one in RARE)]
)
def test_a_hook_that_is_ended(agent: Agent, number: int) -> None:
    process, request = asks(agent)
    with process:
        process.send_signal(number)
        process.send_signal(number)  # as Claude Code does
        out, err = process.communicate(timeout=start.PATIENCE)
    assert out == b""
    if number != signal.SIGKILL:
        assert process.returncode == 2 and b"ClientGone" in err
    is_withdrawn(agent, request)


def test_an_agent_that_is_killed_reads_its_hook_no_more(agent: Agent) -> None:
    process, request = asks(agent)
    with process:
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
        assert process.wait(start.PATIENCE) == 2
    is_withdrawn(agent, request)


def test_the_shell_of_the_hook_is_killed(agent: Agent) -> None:
    words = [sys.executable, "-I", hook_launcher.__file__, "claude-code", "--project", str(agent.directory)]
    event = json.dumps(agent.event("Write", {"file_path": "a", "content": "x"}))
    with subprocess.Popen(
        ["sh", "-c", f"{' '.join(words)} || exit 2"],
        env=agent.env,
        cwd=agent.directory,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as shell:
        assert shell.stdin is not None
        shell.stdin.write(event)
        shell.stdin.close()
        shell.stdin = None
        [request] = until(agent.waits, "the call is asked about")
        shell.kill()
        out, err = shell.communicate(timeout=start.PATIENCE)  # until the hook itself has closed them
    assert out == "" and "ClientGone" in err
    is_withdrawn(agent, request["id"])


def test_an_answer_that_cannot_be_told_is_taken_back(agent: Agent) -> None:
    event = json.dumps(agent.event("Write", {"file_path": "a", "content": "x"})).encode()
    with open("/dev/full", "wb") as full:
        line = [sys.executable, hook_launcher.__file__, "claude-code", "--project", str(agent.directory)]
        with start.Process(
            line, cwd=agent.directory, env=agent.env, stdin=subprocess.PIPE, stdout=full, stderr=subprocess.PIPE
        ) as process:
            assert process.stdin is not None
            process.stdin.write(event)
            process.stdin.close()
            process.stdin = None
            [request] = until(agent.waits, "the call is asked about")
            agent.signoff("approve", request["id"])
            assert process.wait(start.PATIENCE) == 2
    assert agent.waits() == []
    assert GONE in agent.signoff("show", request["id"]), "it did not run, and nobody has to say so"


def test_the_same_call_is_asked_about_again(agent: Agent) -> None:
    process, request = asks(agent)
    with process:
        process.kill()
    until(lambda: not agent.waits(), "the request is withdrawn", 20)
    again, other = asks(agent)
    with again:
        assert other != request
        agent.signoff("approve", other)
        out, _ = again.communicate(timeout=start.PATIENCE)
    assert json.loads(out)["hookSpecificOutput"]["permissionDecision"] == "allow"


def test_the_outcome_of_a_call_is_recorded_whoever_is_gone(agent: Agent) -> None:
    process, request = asks(agent)
    with process:
        agent.signoff("approve", request)
        process.communicate(timeout=start.PATIENCE)
    event = agent.event("Write", {"file_path": "a", "content": "x"}, hook_event_name="PostToolUse", tool_response="ok")
    reader, writer = os.pipe()
    os.close(reader)
    line = [sys.executable, hook_launcher.__file__, "claude-code", "--project", str(agent.directory)]
    done = start.run(line, input=json.dumps(event).encode(), cwd=agent.directory, env=agent.env, stdout=writer)
    os.close(writer)
    assert done.returncode == 0
    assert "ran" in agent.signoff("show", request)
