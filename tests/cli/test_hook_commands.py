"""`signoff hook install`, `status`, `uninstall`, and `signoff init --for`, typed in a project."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.desk import Desk, asks

from signoff.config import load_settings
from signoff.core.call import Call
from signoff.policy.layers import Layers

FOREIGN = """{
  // my own settings
  "model": "opus",
  "hooks": {
    "PreToolUse": [
      {"matcher": "Bash", "hooks": [{"type": "command", "command": "lint"}]}, // keep
    ],
  },
}
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "user"
    place.mkdir()
    monkeypatch.setenv("HOME", str(place))
    return place


@pytest.mark.parametrize("agent", ["claude-code", "codex", "gemini"])
def test_installed_shown_first_and_taken_out_again(desk: Desk, home: Path, agent: str) -> None:
    name = {"claude-code": ".claude/settings.json", "codex": ".codex/hooks.json", "gemini": ".gemini/settings.json"}
    file = home / name[agent]
    file.parent.mkdir()
    file.write_text(FOREIGN)
    shown = desk.run("hook", "install", agent, "--dry-run").out
    assert "+" in shown and "Nothing was changed." in shown and file.read_text() == FOREIGN
    assert f"wrote {file}" in desk.run("hook", "install", agent, "--yes").out
    text = file.read_text()
    assert "// my own settings" in text and '"lint"' in text and "// keep" in text
    assert text.count("|| exit 2") == (3 if agent == "claude-code" else 2)
    assert ('"timeout": 3660000' if agent == "gemini" else '"timeout": 3660') in text
    assert "nothing was changed" in desk.run("hook", "install", agent, "--yes").out
    again = desk.run("hook", "install", agent, "--yes", "--wait", "2h").out
    assert "--limit 7230" in file.read_text() and "--limit 3630" not in file.read_text(), again
    desk.run("hook", "uninstall", agent, "--yes")
    assert file.read_text() == FOREIGN


def test_installed_for_a_server_with_the_credential_of_an_instance(
    desk: Desk, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SIGNOFF_SERVER", raising=False)
    file, token = home / ".claude" / "settings.json", tmp_path / "a token"
    token.write_text("soi_x\n")
    token.chmod(0o644)
    words = ("hook", "install", "claude-code", "--yes", "--token-file", str(token))
    assert "give both --token-file and --server" in desk.run(*words).err
    assert "others can read" in desk.run(*words, "--server", "https://signoff.example.com").err
    token.chmod(0o600)
    assert "use https" in desk.run(*words, "--server", "http://signoff.example.com").err
    assert not file.exists()
    said = desk.run(*words, "--server", "https://signoff.example.com/")
    assert "inbox of https://signoff.example.com" in said.out
    assert "and what that asks about by the policy of https://signoff.example.com" in said.out
    assert f"--server https://signoff.example.com --token-file '{token}' || exit 2" in file.read_text()
    monkeypatch.setenv("SIGNOFF_SERVER", "http://127.0.0.1:8420")
    desk.run(*words)
    assert "--server http://127.0.0.1:8420 " in file.read_text()
    settings = json.loads(file.read_text())
    del settings["hooks"]["PostToolUse"]
    file.write_text(json.dumps(settings))
    again = f"signoff hook install claude-code --server http://127.0.0.1:8420 --token-file '{token}'"
    assert f"{again} writes it" in desk.run("hook", "status").out, "what is repaired asks the same people as before"
    found = [one for one in json.loads(desk.run("doctor", "--json").out)["findings"] if one["check"] == "hook"]
    assert f"{again} repairs its entries" in [one["fix"] for one in found]
    said = desk.run("hook", "install", "claude-code", "--yes").out
    assert "asks the people of http://127.0.0.1:8420 until now, and those here from now on" in said
    assert "--server" not in file.read_text()


def test_status_says_what_keeps_it_from_working(desk: Desk, home: Path) -> None:
    file = home / ".claude" / "settings.json"
    assert desk.run("hook", "status").out.startswith("No hook is installed: signoff hook install AGENT")
    assert "The hook of" not in desk.run("doctor").out
    desk.run("hook", "install", "claude-code", "--yes")
    said = desk.run("hook", "status")
    assert (said.code, "installed" in said.out, "!" in said.out) == (0, True, False)
    assert "The hook of Claude Code goes by this policy: what it allows runs" in desk.run("doctor").out
    settings = json.loads(file.read_text())
    settings |= {"disableAllHooks": True, "permissions": {"defaultMode": "bypassPermissions"}}
    groups = settings["hooks"]["PreToolUse"]
    groups[0]["hooks"][0] |= {"timeout": 10, "command": groups[0]["hooks"][0]["command"].replace(" || exit 2", "")}
    groups.append({"matcher": "Bash", "hooks": [{"type": "command", "command": "rewrite-it"}]})
    del settings["hooks"]["PostToolUse"]
    file.write_text(json.dumps(settings))
    said = desk.run("hook", "status")
    assert said.code == 1
    for problem in (
        "disableAllHooks is set",
        "bypassPermissions",
        "there is no hook for PostToolUse:",
        "does not end with `|| exit 2`",
        "a hook that times out lets the call run",
        "another hook also handles PreToolUse",
    ):
        assert problem in said.out, problem
    data = json.loads(desk.run("hook", "status", "--json").out)
    assert data["hooks"][0]["installed"] and len(data["hooks"][0]["problems"]) == 6


def test_installed_on_permission_requests_only(desk: Desk, home: Path) -> None:
    file = home / ".claude" / "settings.json"
    words = ("hook", "install", "claude-code", "--yes", "--on", "permission-request")
    assert "own settings and mode allow runs without signoff" in desk.run(*words).out
    assert list(json.loads(file.read_text())["hooks"]) == ["PermissionRequest", "PostToolUse", "PostToolUseFailure"]
    assert desk.run("hook", "status").code == 0
    settings = json.loads(file.read_text())
    del settings["hooks"]["PostToolUse"]
    file.write_text(json.dumps(settings))
    assert "signoff hook install claude-code --on permission-request writes it" in desk.run("hook", "status").out
    desk.run("hook", "install", "claude-code", "--yes")
    assert "PermissionRequest" not in json.loads(file.read_text())["hooks"], "one of the two ways, not both"
    assert "PreToolUse" in json.loads(file.read_text())["hooks"]
    assert "no hook on permission requests" in desk.run("hook", "install", "codex", "--on", "permission-request").err


def test_status_says_that_codex_skips_a_hook_that_it_does_not_trust(
    desk: Desk, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here without the program, by its settings. With it: `tests/outside/test_real_agents.py`."""
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CODEX_HOME", raising=False)
    desk.run("hook", "install", "codex", "--yes")
    said = desk.run("hook", "status")
    assert said.code == 1 and "installed, not trusted: every call runs unjudged" in said.out
    assert "Note: Codex runs a call if the shell of its hook is killed" in said.out
    [found] = [one for one in json.loads(desk.run("doctor", "--json").out)["findings"] if one["check"] == "hook"]
    assert found["severity"] == "error" and "Codex has not been told to trust this hook" in found["what"]
    file = home / ".codex" / "hooks.json"
    for text in ("[hooks", "hooks = 3", f'[hooks.state."{file}:post_tool_use:0:0"]\ntrusted_hash = "sha256:1"\n'):
        (home / ".codex" / "config.toml").write_text(text)
        assert desk.run("hook", "status").code == 1, text
    state = f'[hooks.state."{file}:pre_tool_use:0:0"]\ntrusted_hash = "sha256:1"\n'
    (home / ".codex" / "config.toml").write_text(state)
    assert desk.run("hook", "status").code == 0, "whether it is the hash of today's hook only Codex can tell"


@pytest.mark.parametrize(
    ("says", "code", "told"),
    [
        (
            "2.1.88 (Claude Code)",
            1,
            "this is Claude Code 2.1.88, and before 2.1.89 it changes command lines with pipes",
        ),
        ("2.0.77", 1, "use 2.1.89 or newer (`claude update`, or npm install -g @anthropic-ai/claude-code@latest"),
        ("2.1.89 (Claude Code)", 0, ""),
        ("2.2.0-beta.1", 0, ""),
        ("3.0", 0, ""),
        ("usage: claude", 0, "it is not known which version of Claude Code runs (`claude --version` says none): use"),
        (None, 0, "(there is no `claude` on your PATH): use 2.1.89 or newer"),
    ],
)
def test_an_agent_that_changes_calls_behind_its_hook_is_too_old(
    desk: Desk, home: Path, monkeypatch: pytest.MonkeyPatch, says: str | None, code: int, told: str
) -> None:
    if says is not None:
        (home / "claude").write_text(f"#!/bin/sh\necho '{says}'\n")
        (home / "claude").chmod(0o755)
    monkeypatch.setenv("PATH", f"{home}:/bin" if says is not None else str(home))
    done, status = desk.run("hook", "install", "claude-code", "--yes"), desk.run("hook", "status")
    assert told in done.out + done.err and told in status.out and done.code == 0 and status.code == code
    assert bool(told) == ("2.1.89 or newer" in done.out + done.err) == ("2.1.89 or newer" in status.out)
    found = [one for one in json.loads(desk.run("doctor", "--json").out)["findings"] if one["check"] == "hook"]
    assert [one["severity"] for one in found] == ([] if not told else ["error" if code else "note"])
    assert all("use 2.1.89 or newer" in one["what"] and not one["fix"] for one in found)


def test_two_hooks_for_one_agent_are_named(desk: Desk, home: Path) -> None:
    desk.run("hook", "install", "claude-code", "--yes")
    desk.run("hook", "install", "claude-code", "--project", "--yes")
    said = desk.run("hook", "status")
    assert said.code == 1
    assert said.out.count("!") == 1 and "signoff hook uninstall claude-code --project" in said.out


def test_what_was_written_here_is_trusted_and_a_rule_of_signoffs_own_keeps_it_so(desk: Desk, home: Path) -> None:
    file = desk.directory / "signoff.yaml"
    said = desk.run("hook", "install", "claude-code", "--yes").out
    assert "The project's file applies once you have reviewed it and run: signoff hook trust" in said
    assert "is trusted, as it is now" in desk.run("hook", "trust").out
    assert "is trusted already" in desk.run("hook", "trust").out
    before = file.read_text()
    [one] = desk.open(asks())
    assert desk.run("policy", "add", one, "--deny", "--rule", "tool", "--yes").code == 0
    assert file.read_text() != before
    assert "is trusted already" in desk.run("hook", "trust").out
    file.write_text(before + "# by somebody else\n")
    assert "is trusted, as it is now" in desk.run("hook", "trust").out
    file.unlink()
    desk.run("init", "--for", "codex")
    assert "is trusted already" in desk.run("hook", "trust").out


def test_doctor_tells_of_hooks_that_cannot_work(desk: Desk, home: Path) -> None:
    def told() -> list[str]:
        findings = json.loads(desk.run("doctor", "--json").out)["findings"]
        return [
            f"{one['severity']}: {one['what']}"
            for one in findings
            if one["check"] == "hook" and one["severity"] != "note"
        ]

    assert told() == []
    desk.run("hook", "install", "claude-code", "--yes")
    assert told() == []
    file = home / ".claude" / "settings.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "disableAllHooks": True}))
    [problem] = told()
    assert problem.startswith("error: disableAllHooks is set: no hook runs")


def test_a_settings_file_that_is_broken_is_left_alone(desk: Desk, home: Path) -> None:
    file = home / ".claude" / "settings.json"
    file.parent.mkdir()
    file.write_text('{"a": 1')
    said = desk.run("hook", "install", "claude-code", "--yes")
    assert said.code == 2
    assert "settings.json:1: a comma or '}' is missing; nothing was changed" in said.err
    assert file.read_text() == '{"a": 1'


def test_a_first_policy_takes_the_projects_tests_from_its_files(desk: Desk) -> None:
    (desk.directory / "signoff.yaml").unlink()
    (desk.directory / "pyproject.toml").touch()
    (desk.directory / "Cargo.toml").touch()
    said = desk.run("init", "--for", "claude-code")
    assert "signoff hook install claude-code --project" in said.out
    policy = Layers(load_settings(str(desk.directory / "signoff.yaml")).layers)

    def effect(tool: str, label: str, **args: object) -> str:
        call = Call(tool=tool, args=args, labels=frozenset({label}), start=str(desk.directory))
        return str(policy.judge(call).effect)

    for command, wanted in {
        "git status": "allow",
        "pytest -x tests": "allow",
        "cargo test": "allow",
        "go test ./...": "ask",
        "git push": "ask",
        "pip install x": "ask",
        "curl https://example.com": "ask",
        "cat .env": "ask",
        "sudo ls": "deny",
    }.items():
        assert effect("Bash", "proc.exec", command=command) == wanted, command
    assert effect("Edit", "fs.write", file_path="src/app.py") == "allow"
    assert effect("Edit", "fs.write", file_path="signoff.yaml") == "deny"
    assert effect("Write", "fs.write", file_path=".git/hooks/pre-push") == "deny"
    assert effect("Write", "fs.write", file_path="/etc/motd") == "ask"
    assert effect("Read", "fs.read", file_path=".env") == "deny"
    assert effect("WebFetch", "net.egress", url="https://example.com") == "ask"
