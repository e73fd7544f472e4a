"""The real Claude Code against a stand-in of the model: in no case does a call run that was not allowed or approved.

It is in the wheel `claude-agent-sdk`, which nothing else here needs: where that is not installed, nothing is tested.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests import start
from tests.outside.messages_api import MessagesApi, Turn
from tests.server.serving import until


def program() -> str:
    """Where Claude Code is; empty where it is not."""
    if named := os.environ.get("SIGNOFF_TEST_CLAUDE", ""):
        return named
    found = importlib.util.find_spec("claude_agent_sdk")
    there = Path(found.origin).parent / "_bundled" / "claude" if found is not None and found.origin else None
    return str(there) if there is not None and there.is_file() else ""


pytestmark = [
    pytest.mark.skipif(
        not program(), reason="no Claude Code here: .venv/bin/uv pip install claude-agent-sdk brings it"
    ),
    pytest.mark.timeout(240),
]
POLICY = """\
policy:
  - allow: {label: proc.exec, command: read-only}
  - deny: {command: sudo}
    reason: nobody is root here
  - allow: {tool: [Agent, Task]}
  - ask: "*"
"""
MAKE = ("Bash", {"command": "touch made.txt", "description": "Make a file"})
READ = ("Bash", {"command": "cat known.txt", "description": "Read a file"})
KNOWN = "what is in the file"
ROOT = ("Bash", {"command": "sudo touch made.txt", "description": "Make a file"})
BYPASS = ("--permission-mode", "bypassPermissions")


@dataclass
class Session:
    """Claude Code in a project whose hook is installed."""

    directory: Path
    home: Path
    api: MessagesApi
    environment: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def env(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "SIGNOFF_AS": "ana",
            "ANTHROPIC_BASE_URL": self.api.url,
            "ANTHROPIC_API_KEY": "none",
            "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "IS_SANDBOX": "1",
            **self.environment,
        }

    def signoff(self, *words: str) -> str:
        done = start.run([*start.SIGNOFF, *words], cwd=self.directory, env=self.env, capture_output=True, text=True)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def begin(self, *words: str) -> subprocess.Popen[str]:
        command = [program(), "-p", "DO IT", "--output-format", "json", *words]
        return subprocess.Popen(
            command,
            cwd=self.directory,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str) -> list[str]:
        """What the model was told about its calls."""
        return self.ended(self.begin(*words))

    def ended(self, process: subprocess.Popen[str]) -> list[str]:
        with process:
            out, err = process.communicate(timeout=start.PATIENCE)
        assert process.returncode == 0, (out, err)
        return self.api.results()

    def waits(self) -> list[dict[str, Any]]:
        return json.loads(self.signoff("inbox", "--json"))["requests"]

    def made(self) -> bool:
        return (self.directory / "made.txt").exists()


Sits = Callable[..., Session]


@pytest.fixture
def sits(tmp_path: Path) -> Iterator[Sits]:
    made: list[Session] = []

    def begin(*turns: Turn, wait: str = "1h", **others: Sequence[Turn]) -> Session:
        scripts: Mapping[str, Sequence[Turn]] = {**others, "DO IT": turns}
        session = Session(tmp_path / "project", tmp_path / "home", MessagesApi(scripts))
        made.append(session)
        session.directory.mkdir()
        session.home.mkdir()
        (session.directory / "signoff.yaml").write_text(POLICY)
        (session.directory / "known.txt").write_text(KNOWN)
        session.signoff("hook", "install", "claude-code", "--project", "--yes", "--wait", wait)
        return session

    yield begin
    for one in made:
        one.api.close()


def calls(*made: tuple[str, dict[str, Any]]) -> Turn:
    return {"calls": list(made)}


def test_allowed_and_approved_from_the_inbox_while_permissions_are_bypassed(sits: Sits) -> None:
    session = sits(calls(READ), calls(MAKE))
    process = session.begin(*BYPASS)
    [request] = until(session.waits, "the call is asked about", start.PATIENCE)
    assert not session.made() and request["tool"] == "Bash"
    session.signoff("approve", request["id"])
    read, made = session.ended(process)
    assert KNOWN in read and "signoff" not in made
    assert session.made()
    record = session.signoff("audit", "log")
    assert [word in record for word in ("allowed", "asked", "claimed", "ran")] == [True] * 4


@pytest.mark.nightly
@pytest.mark.parametrize("mode", [(), BYPASS, ("--permission-mode", "acceptEdits")], ids=["default", "bypass", "edits"])
def test_denied_by_policy(sits: Sits, mode: tuple[str, ...]) -> None:
    session = sits(calls(ROOT))
    [told] = session.run(*mode)
    assert "refused by policy: nobody is root here" in told and not session.made()


@pytest.mark.nightly
def test_denied_by_a_person_and_the_model_reads_why(sits: Sits) -> None:
    session = sits(calls(MAKE))
    process = session.begin(*BYPASS)
    [request] = until(session.waits, "the call is asked about", start.PATIENCE)
    session.signoff("deny", request["id"], "--note", "not on a Friday")
    [told] = session.ended(process)
    assert "refused by ana: not on a Friday" in told and not session.made()


@pytest.mark.nightly
def test_approved_with_other_arguments(sits: Sits) -> None:
    session = sits(calls(MAKE))
    process = session.begin(*BYPASS)
    [request] = until(session.waits, "the call is asked about", start.PATIENCE)
    other = {"command": "touch other.txt", "description": "Make a file"}
    session.signoff("approve", request["id"], "--args", json.dumps(other))
    session.ended(process)
    assert (session.directory / "other.txt").exists() and not session.made()


@pytest.mark.nightly
def test_two_calls_in_one_turn_are_answered_each_on_its_own(sits: Sits) -> None:
    second = ("Bash", {"command": "touch second.txt", "description": "Make another"})
    session = sits(calls(MAKE, second))
    process = session.begin(*BYPASS)
    answers = {"touch made.txt": "deny", "touch second.txt": "approve"}
    while answers:
        [request, *_] = until(session.waits, "a call is asked about", start.PATIENCE)
        shown = json.loads(session.signoff("show", request["id"], "--json"))
        session.signoff(answers.pop(shown["args"]["command"]), request["id"])
    session.ended(process)
    assert (session.directory / "second.txt").exists() and not session.made()


@pytest.mark.nightly
def test_an_agent_inside_the_agent_is_judged_by_the_same_rules(sits: Sits) -> None:
    inner = ("Agent", {"description": "Do a part", "prompt": "INNER PART", "subagent_type": "general-purpose"})
    session = sits(calls(inner), **{"INNER PART": [calls(ROOT), calls(MAKE)]})
    process = session.begin(*BYPASS)
    [request] = until(session.waits, "the call inside is asked about", start.PATIENCE)
    assert request["worker"] == "claude-code > general-purpose"
    session.signoff("deny", request["id"])
    told = session.ended(process)
    assert any("nobody is root here" in one for one in told) and not session.made()


def _broken_policy(session: Session) -> None:
    (session.directory / "signoff.yaml").write_text("policy: [{alow: x}]\n")


def _no_store(session: Session) -> None:
    session.environment["SIGNOFF_STORE"] = "sqlite:/dev/null/none.db"


def _instead(code: str) -> Callable[[Session], None]:
    """Another program in the place of the hook's, behind the same line."""

    def change(session: Session) -> None:
        file = session.directory / ".claude" / "settings.local.json"
        script = session.home / "instead.py"
        script.write_text(code)
        settings = json.loads(file.read_text())
        for groups in settings["hooks"].values():
            for one in groups[0]["hooks"]:
                one["command"] = f"{sys.executable} {script} || exit 2"
        file.write_text(json.dumps(settings))

    return change


FAULTS: Mapping[str, Callable[[Session], None]] = {
    "the policy is broken": _broken_policy,
    "the store is gone": _no_store,
    "the hook is killed": _instead("import os; os.kill(os.getpid(), 9)"),
    "the hook raises": _instead("raise RuntimeError"),
    "the hook prints garbage, and fails": _instead("print('{{{'); raise SystemExit(1)"),
    "the program is gone": lambda one: _instead("")(one) or (one.home / "instead.py").unlink(),
}


@pytest.mark.nightly
@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_is_wrong_nothing_runs_though_permissions_are_bypassed(sits: Sits, fault: str) -> None:
    session = sits(calls(MAKE), calls(READ))
    FAULTS[fault](session)
    told = session.run(*BYPASS)
    assert not session.made()
    assert len(told) == 2 and KNOWN not in told[1], "not even what would be allowed"


@pytest.mark.nightly
@pytest.mark.parametrize(("word", "runs"), [("approve", True), ("deny", False)])
def test_headless_by_the_permission_tool_and_without_a_hook(sits: Sits, word: str, runs: bool) -> None:
    session = sits(calls(MAKE))
    session.signoff("hook", "uninstall", "claude-code", "--project", "--yes")
    server = {"command": sys.executable, "args": ["-c", start.SIGNOFF[-1], "mcp", "approve-tool"]}
    config = json.dumps({"mcpServers": {"signoff": server}})
    process = session.begin("--permission-prompt-tool", "mcp__signoff__approve", "--mcp-config", config)
    [request] = until(session.waits, "the call is asked about", start.PATIENCE)
    session.signoff(word, request["id"])
    session.ended(process)
    assert session.made() is runs


@pytest.mark.nightly
def test_nobody_answers(sits: Sits) -> None:
    session = sits(calls(MAKE), wait="3s")
    [told] = session.run(*BYPASS)
    assert "nobody answered" in told and not session.made()
