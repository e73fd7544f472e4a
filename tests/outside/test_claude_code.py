"""The real Claude Code against a stand-in of the model: in no case does a call run that was not allowed or approved.

What is the same for all agents is in `test_real_agents.py`. By day, where it is not there, nothing is installed.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pexpect
import pytest
from tests import start
from tests.outside.model_api import Script, Turn
from tests.outside.real_agents import BYPASS, CLAUDE, KNOWN, Session, calls, program, session
from tests.server.serving import until

pytestmark = pytest.mark.timeout(240)
MAKE = CLAUDE.shell("touch made.txt")
READ = CLAUDE.shell("cat known.txt")
ROOT = CLAUDE.shell("sudo touch made.txt")
Sits = Callable[..., Session]


@pytest.fixture
def sits(tmp_path: Path) -> Iterator[Sits]:
    with ExitStack() as stack:

        def begin(*turns: Turn, words: tuple[str, ...] = (), **others: Script) -> Session:
            return stack.enter_context(session(CLAUDE, tmp_path, {**others, "DO IT": turns}, *words))

        yield begin


@pytest.mark.skipif(
    not program(CLAUDE), reason="no Claude Code here: .venv/bin/uv pip install claude-agent-sdk brings it"
)
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
    assert request["session"].endswith(f" in {session.directory}")
    session.signoff(word, request["id"])
    session.ended(process)
    assert session.made() is runs


# --- only what Claude Code itself would ask ---

ON_REQUESTS = ("--on", "permission-request")


@pytest.mark.nightly
@pytest.mark.parametrize(("word", "runs"), [("approve", True), ("deny", False)])
def test_what_claude_code_would_ask_its_user_is_asked_here(sits: Sits, word: str, runs: bool) -> None:
    session = sits(calls(READ), calls(MAKE), calls(MAKE), words=(*ON_REQUESTS, "--wait", "20s"))
    assert "installed" in session.signoff("hook", "status")
    process = session.begin()
    [request] = until(session.waits, "the call is asked about", start.PATIENCE)
    session.signoff(word, request["id"], "--note", "as agreed")
    _, told, again = session.ended(process)
    assert session.made() is runs and ("as agreed" in told) is not runs
    assert "nobody answered" in again, "an approval is for one call"
    assert request["id"] and ("ran" in session.signoff("show", request["id"])) is runs


@pytest.mark.nightly
def test_what_claude_code_does_not_ask_is_not_judged_on_requests(sits: Sits) -> None:
    session = sits(calls(ROOT), calls(MAKE), words=ON_REQUESTS)
    told = session.run(*BYPASS)
    assert session.made() and not any("signoff" in one for one in told), "the documentation says so"


@pytest.mark.nightly
def test_edited_on_a_request_and_refused_by_policy(sits: Sits) -> None:
    session = sits(calls(MAKE), calls(ROOT), words=ON_REQUESTS)
    process = session.begin()
    [request] = until(session.waits, "the call is asked about", start.PATIENCE)
    session.signoff("approve", request["id"], "--args", json.dumps({"command": "touch other.txt"}))
    _, denied = session.ended(process)
    assert session.made("other.txt") and not session.made()
    assert "nobody is root here" in denied


@pytest.mark.nightly
@pytest.mark.parametrize("fault", ["the policy is broken", "the hook is killed", "the program is gone"])
def test_whatever_is_wrong_on_a_request_its_own_user_is_asked(sits: Sits, fault: str) -> None:
    """Without a user, as here, that is a no."""
    session = sits(calls(MAKE), words=ON_REQUESTS)
    FAULTS[fault](session)
    session.run()
    assert not session.made()


# --- interrupted and killed ---


def withdrawn(one: Session, request: dict[str, Any]) -> None:
    """The request is over within seconds, an approval comes too late, and nobody is asked what became of the call."""
    until(lambda: not one.waits(), "the request is withdrawn", 20)
    late = start.run(
        [*start.SIGNOFF, "approve", request["id"]], cwd=one.directory, env=one.env, capture_output=True, text=True
    )
    assert late.returncode != 0 and "nobody waits for it any more" in late.stdout + late.stderr
    assert one.waits() == [] and not one.made()


@pytest.mark.nightly
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_claude_code_is_ended_while_a_call_waits(sits: Sits, number: int) -> None:
    one = sits(calls(MAKE))
    process = one.begin(*BYPASS)
    [request] = until(one.waits, "the call is asked about", start.PATIENCE)
    process.send_signal(number)
    process.communicate(timeout=start.PATIENCE)
    withdrawn(one, request)


@pytest.mark.nightly
def test_escape_withdraws_the_request_and_the_next_one_can_be_approved(sits: Sits) -> None:
    one = sits(calls(MAKE), calls(MAKE))
    settings = {"hasCompletedOnboarding": True, "projects": {str(one.directory): {"hasTrustDialogAccepted": True}}}
    settings["customApiKeyResponses"] = {"approved": [one.env["ANTHROPIC_API_KEY"][-20:]], "rejected": []}
    (one.home / ".claude.json").write_text(json.dumps(settings))
    given = {"cwd": one.directory, "env": {**one.env, "TERM": "xterm-256color"}, "dimensions": (40, 100)}
    with start.terminal([program(CLAUDE), "DO IT"], **given) as screen:
        drain = threading.Thread(target=drained, args=(screen,))
        drain.start()
        [request] = until(one.waits, "the call is asked about", start.PATIENCE)
        screen.send("\x1b")
        withdrawn(one, request)
        screen.send("DO IT once more")
        screen.send("\r")
        [again] = until(one.waits, "the next call is asked about", start.PATIENCE)
        one.signoff("approve", again["id"])
        until(one.made, "what was approved ran", start.PATIENCE)
        screen.kill(signal.SIGKILL)
        drain.join(start.PATIENCE)


def drained(screen: Any) -> None:
    """Read until the program ends: a terminal that is full would stop it."""
    screen.expect(pexpect.EOF, timeout=None)
