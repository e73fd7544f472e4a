"""A hook as an agent starts it: a process, an event on its standard input, an answer or a refusal."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests import start
from tests.cli.program import called
from tests.server.serving import DESK, until

from signoff.core.strict_json import MOST_BYTES, MOST_PARTS
from signoff.errors import WrongUse
from signoff.wiring import hook_launcher, outside_desk, project_trust

POLICY = """\
policy:
  - allow: {label: proc.exec, command: read-only}
  - deny: {command: sudo}
    reason: nobody is root here
  - {ask: {tool: Write}, timeout: 15m}
"""


@dataclass
class Agent:
    """Whoever starts hooks: a session in a project."""

    directory: Path
    home: Path
    environment: dict[str, str] = field(default_factory=dict[str, str])
    for_user: bool = False
    """Whether the hook was installed for everything the user does, and not for this project."""

    @property
    def env(self) -> dict[str, str]:
        plain = {"HOME": str(self.home), "PATH": os.environ["PATH"], "SIGNOFF_AS": "ana", "SIGNOFF_HOOK_RESIDENT": "0"}
        return {**plain, **self.environment}

    def event(self, tool: str, given: dict[str, Any], number: str = "t1", **more: Any) -> dict[str, Any]:
        return {
            "session_id": "s1",
            "cwd": str(self.directory),
            "hook_event_name": "PreToolUse",
            "tool_name": tool,
            "tool_input": given,
            "tool_use_id": number,
            "permission_mode": "bypassPermissions",
            **more,
        }

    def begin(self, event: object, *words: str, agent: str = "claude-code") -> start.Process:
        text = event if isinstance(event, bytes) else json.dumps(event).encode()
        project = () if self.for_user else ("--project", str(self.directory))
        process = start.Process(
            [sys.executable, hook_launcher.__file__, agent, *words, *project],
            cwd=self.directory,
            env=self.env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdin is not None
        process.stdin.write(text)
        process.stdin.close()
        process.stdin = None
        return process

    def hook(self, event: object, *words: str, agent: str = "claude-code") -> tuple[int, str, str]:
        with self.begin(event, *words, agent=agent) as process:
            out, err = process.communicate(timeout=start.PATIENCE)
        return process.returncode, out.decode(), err.decode()

    def decides(self, tool: str, given: dict[str, Any], *words: str, **more: Any) -> dict[str, Any]:
        code, out, err = self.hook(self.event(tool, given, **more), *words)
        assert code == 0, (code, out, err)
        return json.loads(out)["hookSpecificOutput"]

    def signoff(self, *words: str) -> str:
        if words[0] in DESK:
            done = called(words, self.directory, self.env)
        else:
            command = [*start.SIGNOFF, *words]
            done = start.run(command, cwd=self.directory, env=self.env, capture_output=True, text=True)
        assert done.returncode == 0, (words, done.stdout, done.stderr)
        return done.stdout

    def waits(self) -> list[dict[str, Any]]:
        return json.loads(self.signoff("inbox", "--json"))["requests"]


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    made = Agent(tmp_path / "project", tmp_path / "home")
    made.directory.mkdir()
    made.home.mkdir()
    (made.directory / "signoff.yaml").write_text(POLICY)
    return made


def test_allowed_denied_and_what_comes_of_silence(agent: Agent) -> None:
    assert agent.decides("Bash", {"command": "git log | head"})["permissionDecision"] == "allow"
    denied = agent.decides("Bash", {"command": "sudo ls"}, number="t2")
    assert denied["permissionDecision"] == "deny"
    assert "refused by policy: nobody is root here" in denied["permissionDecisionReason"]
    late = agent.decides("Bash", {"command": "make"}, "--limit", "8", number="t3")
    assert late["permissionDecision"] == "deny"
    assert "signoff: refused: nobody answered" in late["permissionDecisionReason"]
    assert agent.waits() == [], "what nobody waits for any longer is withdrawn"


def test_people_are_told_how_long_the_agent_waits(agent: Agent) -> None:
    with agent.begin(agent.event("Bash", {"command": "make"}), "--limit", "600") as process:
        [request] = until(agent.waits, "the call is asked about")
        span = datetime.fromisoformat(request["deadline"]) - datetime.fromisoformat(request["opened_at"])
        assert timedelta(seconds=500) < span < timedelta(seconds=570) and request["then"] == "it is denied"
        agent.signoff("deny", request["id"])
        process.communicate(timeout=start.PATIENCE)
    with agent.begin(agent.event("Write", {"file_path": "a"}, "t2"), "--limit", "3600") as process:
        [request] = until(agent.waits, "the call is asked about")
        span = datetime.fromisoformat(request["deadline"]) - datetime.fromisoformat(request["opened_at"])
        assert span == timedelta(minutes=15), "a shorter time of the rule counts"
        agent.signoff("deny", request["id"])
        process.communicate(timeout=start.PATIENCE)


@pytest.mark.parametrize(("word", "decision"), [("approve", "allow"), ("deny", "deny")])
def test_what_is_asked_waits_in_the_inbox_and_the_answer_counts_once(agent: Agent, word: str, decision: str) -> None:
    event = agent.event("Write", {"file_path": "a.txt", "content": "x"})
    with agent.begin(event) as process:
        [request] = until(agent.waits, "the call is asked about")
        assert request["tool"] == "Write" and request["deadline"]
        agent.signoff(word, request["id"], "--note", "as agreed")
        out, _ = process.communicate(timeout=start.PATIENCE)
    assert json.loads(out)["hookSpecificOutput"]["permissionDecision"] == decision
    assert ("as agreed" in out.decode()) or decision == "allow"
    # The same call again, as an agent that was resumed makes it: nobody is asked, and nothing runs twice.
    assert agent.decides("Write", event["tool_input"])["permissionDecision"] == "deny"
    other = agent.begin({**event, "tool_input": {"file_path": "b.txt", "content": "x"}}, "--limit", "6")
    assert other.wait(start.PATIENCE) == 0 and "deny" in other.communicate()[0].decode()


def test_changed_arguments_reach_the_agent_and_the_outcome_the_record(agent: Agent) -> None:
    event = agent.event("Write", {"file_path": "a.txt", "content": "x"})
    with agent.begin(event) as process:
        [request] = until(agent.waits, "the call is asked about")
        agent.signoff("approve", request["id"], "--args", '{"file_path": "a.txt", "content": "better"}')
        out, _ = process.communicate(timeout=start.PATIENCE)
    told = json.loads(out)["hookSpecificOutput"]
    assert told["updatedInput"] == {"file_path": "a.txt", "content": "better"}
    assert agent.waits() == [], "while the agent lives, nobody has to say what became of the call"
    after = {**event, "hook_event_name": "PostToolUse", "tool_response": {"ok": True}}
    assert agent.hook({**after, "tool_input": told["updatedInput"]}) == (0, "", "")
    record = agent.signoff("audit", "log")
    assert "claimed" in record and "ran" in record and '{"ok": true}' in record


def test_a_failure_is_on_record_too(agent: Agent) -> None:
    event = agent.event("Write", {"file_path": "a.txt", "content": "x"})
    with agent.begin(event) as process:
        [request] = until(agent.waits, "the call is asked about")
        agent.signoff("approve", request["id"])
        process.communicate(timeout=start.PATIENCE)
    failed = {**event, "hook_event_name": "PostToolUseFailure", "error": "disk full"}
    assert agent.hook(failed)[0] == 0
    assert "failed" in agent.signoff("show", request["id"]) and "disk full" in agent.signoff("show", request["id"])


def test_halted_nothing_runs_not_even_what_is_allowed(agent: Agent) -> None:
    assert agent.decides("Bash", {"command": "ls"})["permissionDecision"] == "allow"
    agent.signoff("halt", "--note", "stop")
    code, out, err = agent.hook(agent.event("Bash", {"command": "ls"}, number="t2"))
    assert (code, out) == (2, "") and "halted" in err


def test_remembered_answers_count(agent: Agent) -> None:
    given = {"file_path": "a.txt", "content": "x"}
    with agent.begin(agent.event("Write", given)) as process:
        [request] = until(agent.waits, "the call is asked about")
        agent.signoff("approve", request["id"], "--remember", "exact", "--yes")
        process.communicate(timeout=start.PATIENCE)
    assert agent.decides("Write", given, number="t2")["permissionDecision"] == "allow"


def test_the_agent_does_not_choose_its_policy_by_moving(agent: Agent, tmp_path: Path) -> None:
    own = tmp_path / "loose"
    own.mkdir()
    (own / "signoff.yaml").write_text('policy: [{allow: "*"}]\n')
    agent.signoff("hook", "trust")
    agent.signoff("hook", "trust", str(own))
    event = agent.event("Bash", {"command": "sudo ls"}, cwd=str(own))
    assert json.loads(agent.hook(event)[1])["hookSpecificOutput"]["permissionDecision"] == "deny"
    agent.for_user, agent.environment = True, {"CLAUDE_PROJECT_DIR": str(agent.directory)}
    assert json.loads(agent.hook(event)[1])["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_a_hook_for_everything_goes_by_no_file_that_its_user_has_not_trusted(agent: Agent) -> None:
    agent.for_user = True
    refused = agent.decides("Bash", {"command": "ls"})
    assert refused["permissionDecision"] == "deny"
    assert f"signoff hook trust {agent.directory}" in refused["permissionDecisionReason"]
    assert "is trusted, as it is now" in agent.signoff("hook", "trust")
    assert agent.decides("Bash", {"command": "ls"}, number="t2")["permissionDecision"] == "allow"
    (agent.directory / "signoff.yaml").write_text('policy: [{allow: "*"}]\n')
    assert agent.decides("Bash", {"command": "ls"}, number="t3")["permissionDecision"] == "deny", "it has changed"
    assert "trusted already" not in agent.signoff("hook", "trust")
    assert agent.decides("Bash", {"command": "make"}, number="t4")["permissionDecision"] == "allow"
    agent.signoff("hook", "trust", "--remove")
    assert agent.decides("Bash", {"command": "make"}, number="t5")["permissionDecision"] == "deny"
    rules = agent.home / ".config" / "signoff" / "policy.yaml"
    rules.parent.mkdir(parents=True)
    rules.write_text("policy: [{allow: {label: proc.exec, command: read-only}}]\n")
    assert agent.decides("Bash", {"command": "ls"}, number="t6")["permissionDecision"] == "allow", "by one's own rules"


def test_a_hook_for_a_project_goes_by_no_file_above_it(agent: Agent) -> None:
    """The project's own file may be gone for a moment only: somebody writes it anew."""
    (agent.directory.parent / "signoff.yaml").write_text('policy: [{allow: "*"}]\n')
    own = agent.directory / "signoff.yaml"
    assert agent.decides("Bash", {"command": "sudo ls"})["permissionDecision"] == "deny"
    own.rename(own.with_suffix(".old"))
    code, out, err = agent.hook(agent.event("Bash", {"command": "sudo ls"}, number="t2"))
    assert (code, out) == (2, "") and f"there is no signoff.yaml in {agent.directory}" in err
    own.with_suffix(".old").rename(own)
    assert agent.decides("Bash", {"command": "ls"}, number="t3")["permissionDecision"] == "allow"


def test_a_file_that_is_exchanged_between_trust_and_reading_does_not_count(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(agent.home))
    file = agent.directory / "signoff.yaml"
    project_trust.trust(str(file))
    read = outside_desk.settings_for

    def exchanged(*given: Any, **more: Any) -> Any:
        trusted = file.read_text()
        file.write_text('policy: [{allow: "*"}]\n')
        found = read(*given, **more)
        file.write_text(trusted)
        return found

    monkeypatch.setattr(outside_desk, "settings_for", exchanged)
    desk = outside_desk.OutsideDesk()
    with pytest.raises(WrongUse, match="changed while it was read"):
        desk.gate(str(agent.directory), None, caller=os.getpid(), takes_edits=True, chosen=False)
    desk.close()


def test_a_command_in_another_directory_is_judged_as_after_a_cd(agent: Agent, tmp_path: Path) -> None:
    (agent.directory / "signoff.yaml").write_text("policy: [{allow: {label: proc.exec, command: [read-only, make]}}]\n")
    (agent.directory / "sub").mkdir()
    (tmp_path / "elsewhere").mkdir()
    assert agent.decides("Bash", {"command": "make"})["permissionDecision"] == "allow"
    for number, where in enumerate((agent.directory / "sub", tmp_path / "elsewhere")):
        reading = agent.decides("Bash", {"command": "ls"}, number=f"r{number}", cwd=str(where))
        assert reading["permissionDecision"] == "allow"
        with agent.begin(agent.event("Bash", {"command": "make"}, f"m{number}", cwd=str(where))) as process:
            [request] = until(agent.waits, "the call is asked about")
            assert "`make` runs in `/" in agent.signoff("show", request["id"], "--json")
            agent.signoff("deny", request["id"])
            out, _ = process.communicate(timeout=start.PATIENCE)
        assert json.loads(out)["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_what_a_dialog_with_the_user_is_about_is_left_to_the_user(agent: Agent) -> None:
    (agent.directory / "signoff.yaml").write_text("policy: [{allow: {tool: ExitPlanMode}}, {deny: {tool: AskUser*}}]\n")
    assert agent.hook(agent.event("ExitPlanMode", {"plan": "all of it"})) == (0, "", "")
    assert agent.decides("AskUserQuestion", {"questions": []}, number="t2")["permissionDecision"] == "deny"


def test_a_long_result_is_an_outcome_too(agent: Agent) -> None:
    event = agent.event("Write", {"file_path": "a.txt", "content": "x"})
    with agent.begin(event) as process:
        [request] = until(agent.waits, "the call is asked about")
        agent.signoff("approve", request["id"])
        process.communicate(timeout=start.PATIENCE)
    after = {**event, "hook_event_name": "PostToolUse", "tool_response": "x" * 2 * MOST_BYTES}
    assert agent.hook(after) == (0, "", "")
    assert "ran" in agent.signoff("show", request["id"])


def test_a_search_is_judged_by_where_it_looks_also_where_it_does_not_say(agent: Agent, tmp_path: Path) -> None:
    (agent.directory / "signoff.yaml").write_text("policy: [{allow: {label: fs.read, path: {inside: .}}}]\n")
    (tmp_path / "elsewhere").mkdir()
    inside, outside = {}, {"cwd": str(tmp_path / "elsewhere")}
    cases: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
        ("Grep", {"pattern": "x"}, inside, "allow"),
        ("Glob", {"pattern": "**/*.py"}, inside, "allow"),
        ("Grep", {"pattern": "/api/..", "glob": "*.py"}, inside, "allow"),
        ("Grep", {"pattern": "x", "glob": "../*"}, inside, "deny"),
        ("Grep", {"pattern": "x"}, outside, "deny"),
        ("Glob", {"pattern": "/etc/*"}, inside, "deny"),
        ("Glob", {"pattern": "../../**"}, inside, "deny"),
        ("Grep", {"pattern": "x", "path": "/etc"}, inside, "deny"),
    ]
    for number, (tool, given, more, wanted) in enumerate(cases):
        found = agent.decides(tool, given, "--limit", "4", number=f"t{number}", **more)
        assert found["permissionDecision"] == wanted, (tool, given, more, found)


EVENT: dict[str, Any] = {"session_id": "s", "cwd": "/", "hook_event_name": "PreToolUse", "tool_name": "Bash"}
BROKEN = {
    "nothing": b"",
    "no JSON": b"{",
    "a list": b"[]",
    "a doubled key": b'{"tool_name": "a", "tool_name": "b"}',
    "a number that is none": b'{"tool_name": NaN}',
    "not UTF-8": b'{"a": "\xff"}',
    "too deep": b'{"a":' * 100_000,
    "too large": b'{"a": "' + b"x" * hook_launcher.MOST_BYTES + b'"}',
    "too large to be judged": json.dumps(
        {**EVENT, "tool_input": {"command": "ls " + "x" * MOST_BYTES}, "tool_use_id": "t"}
    ).encode(),
    "too many parts to be judged": json.dumps(
        {**EVENT, "tool_input": {"command": "ls", "numbers": [1] * MOST_PARTS}, "tool_use_id": "t"}
    ).encode(),
    "no tool": json.dumps({**EVENT, "tool_name": None}).encode(),
    "no arguments": json.dumps(EVENT).encode(),
    "no id": json.dumps({**EVENT, "tool_input": {}}).encode(),
    "an unknown event about a tool": json.dumps({**EVENT, "hook_event_name": "MidToolUse", "tool_input": {}}).encode(),
    "a directory that is not there": json.dumps(
        {**EVENT, "tool_input": {}, "tool_use_id": "t", "cwd": "/dev/null/nope"}
    ).encode(),
}


def test_whatever_is_wrong_with_an_event_refuses(agent: Agent) -> None:
    agent.for_user = True
    for name, text in BROKEN.items():
        code, out, err = agent.hook(text)
        assert (code, out) == (2, ""), (name, code, out)
        assert err.startswith("signoff: the call is refused, because it could not be checked: "), name
        assert "Traceback" not in err


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (lambda one: (one.directory / "signoff.yaml").write_text("policy: [{alow: x}]\n"), "alow"),
        (lambda one: (one.directory / "signoff.yaml").write_bytes(b"\xff"), "signoff.yaml"),
        (lambda one: one.environment.update(SIGNOFF_STORE="sqlite:/dev/null/x.db"), "/dev/null"),
        (lambda one: one.environment.update(SIGNOFF_STORE="postgresql://nobody@127.0.0.1:1/x"), "postgres"),
    ],
    ids=["policy", "policy-bytes", "store", "server"],
)
def test_what_is_broken_around_it_refuses_what_would_be_allowed(agent: Agent, break_it: Any, said: str) -> None:
    break_it(agent)
    code, out, err = agent.hook(agent.event("Bash", {"command": "ls"}))
    assert (code, out) == (2, ""), (code, out, err)
    assert said in err and "Traceback" not in err


def installed_line(*words: str) -> list[str]:
    """As an agent starts it: through its shell."""
    return ["sh", "-c", f"{' '.join(words)} || exit 2"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_hook_that_is_killed_refuses(agent: Agent, number: int) -> None:
    code = f"import os; os.kill(os.getpid(), {int(number)})"
    line = installed_line(sys.executable, "-c", f'"{code}"')
    assert subprocess.run(line, env=agent.env, timeout=60, stderr=subprocess.DEVNULL).returncode == 2


def test_an_interpreter_that_is_gone_refuses(agent: Agent) -> None:
    done = subprocess.run(
        installed_line("/dev/null/python", hook_launcher.__file__), stderr=subprocess.DEVNULL, timeout=60
    )
    assert done.returncode == 2


def test_a_hook_that_hangs_is_ended_by_the_system_before_the_agent_gives_up(agent: Agent) -> None:
    line = installed_line(sys.executable, hook_launcher.__file__, "claude-code", "--limit", "0.5")
    with subprocess.Popen(line, stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=agent.env) as process:
        assert process.wait(60) == 2, "it waits for an event that never comes to its end"
        said = process.stderr.read().decode() if process.stderr is not None else ""
    assert said.startswith("signoff: the call is refused, because it could not be checked: TimeoutError: nothing was")


def test_a_hook_whose_python_is_stuck_is_ended_all_the_same(agent: Agent) -> None:
    stuck = "import ctypes; hook_launcher._standard_input = lambda: ctypes.PyDLL(None).sleep(60)"  # it keeps the GIL
    code = f"from signoff.wiring import hook_launcher; hook_launcher.GRACE = 0.5; {stuck}; "
    line = [sys.executable, "-c", f"{code}hook_launcher.main(['claude-code', '--limit', '0.5'])"]
    done = subprocess.run(["sh", "-c", '"$@" || exit 2', "sh", *line], env=agent.env, timeout=40, capture_output=True)
    assert done.returncode == 2


def test_the_answer_cannot_be_written(agent: Agent) -> None:
    event = json.dumps(agent.event("Bash", {"command": "ls"})).encode()
    line = installed_line(sys.executable, hook_launcher.__file__, "claude-code", ">/dev/full")
    done = subprocess.run(line, input=event, env=agent.env, cwd=agent.directory, capture_output=True, timeout=60)
    assert done.returncode == 2


@pytest.mark.parametrize(("limit", "waits"), [(3630, 3600), (45, 15), (35, 5), (30, 15), (3, 1.5), (0.5, 1)])
def test_people_are_waited_for_as_long_as_was_asked(limit: float, waits: float) -> None:
    assert hook_launcher.patience_within(limit) == waits
