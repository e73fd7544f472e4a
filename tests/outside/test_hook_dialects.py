"""Codex and Gemini CLI by the shapes of their events, as their documentation gives them: the programs were not run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from signoff.core.verdict import Effect
from signoff.outside.hook_event import HookEvent, HookHost, HookMoment
from signoff.outside.hook_hosts import HOSTS
from signoff.outside.outside_gate import CallPermission
from signoff.outside.patch_paths import patch_paths
from signoff.policy.engine import Policy
from signoff.policy.layers import Layers

PATCH = """*** Begin Patch
*** Add File: docs/new.md
+text
*** Update File: src/app.py
*** Move to: src/../../outside.py
@@
-1
+2
*** Delete File: old.txt
*** End Patch
"""
COMMON: dict[str, Any] = {"session_id": "s1", "cwd": "/work", "transcript_path": "/t", "tool_use_id": "c1"}
YES = CallPermission(allowed=True, args={"command": "ls"}, by="policy", reason="reads")
EDITED = CallPermission(allowed=True, args={"command": "ls -a"}, edited=True, by="ana")
NO = CallPermission(allowed=False, args={}, by="ana", reason="not now", request="r1")


def read(agent: str, name: str, tool: str = "Bash", given: dict[str, Any] | None = None, **more: Any) -> HookEvent:
    event = {**COMMON, "hook_event_name": name, "tool_name": tool, "tool_input": given or {"command": "ls"}, **more}
    return HOSTS[agent].read(event)


def told(host: HookHost, event: HookEvent, permission: CallPermission) -> Any:
    reply = host.reply(event, permission)
    assert (reply.code, reply.err) == (0, "")
    return json.loads(reply.out)


def test_codex_is_never_told_a_bare_allow_which_it_takes_for_an_error() -> None:
    codex, before = HOSTS["codex"], read("codex", "PreToolUse")
    yes = told(codex, before, YES)["hookSpecificOutput"]
    assert yes == {"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": {"command": "ls"}}
    assert told(codex, before, EDITED)["hookSpecificOutput"]["updatedInput"] == {"command": "ls -a"}
    no = told(codex, before, NO)["hookSpecificOutput"]
    assert no["permissionDecision"] == "deny" and "refused by ana: not now" in no["permissionDecisionReason"]


@pytest.mark.parametrize(
    ("tool", "given", "line"),
    [
        ("exec_command", {"cmd": "git status", "yield_time_ms": 1000}, "git status"),
        ("shell", {"command": ["bash", "-lc", "git status"]}, "git status"),
        ("shell", {"command": ["rm", "-rf", "a b"]}, "rm -rf 'a b'"),
        ("shell", {"command": ["bash", "x.sh", "-lc"]}, "bash x.sh -lc"),
        ("shell_command", {"command": "ls"}, "ls"),
        ("shell", {"command": ["ls", 3]}, None),
    ],
)
def test_codex_names_its_commands_in_several_ways(tool: str, given: dict[str, Any], line: str | None) -> None:
    call = read("codex", "PreToolUse", tool, given).call
    assert call is not None and call.labels == {"proc.exec"} and not call.doubt
    seen = call.read(Layers(()))
    assert seen.args["command"] == line
    if isinstance(line, str) and "cmd" in given:
        assert call.own({**seen.args, "cmd": "ls"}) == {**given, "cmd": "ls"}


def test_codex_runs_a_command_where_it_says_and_is_given_back_the_form_it_gave() -> None:
    event = read("codex", "PreToolUse", "shell", {"command": ["bash", "-lc", "ls"], "workdir": "sub/../../etc"})
    assert event.call is not None and event.call.directory == "/etc"
    edited = CallPermission(allowed=True, args={"command": "ls -a"}, edited=True, by="ana")
    as_it_was = CallPermission(allowed=True, args=event.call.args, by="policy")
    codex = HOSTS["codex"]
    assert told(codex, event, edited)["hookSpecificOutput"]["updatedInput"] == {"command": ["bash", "-lc", "ls -a"]}
    assert told(codex, event, as_it_was)["hookSpecificOutput"]["updatedInput"] == event.call.args


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"cmd": "ls", "command": "rm -rf ."}, "two commands"),
        ({"cmd": "ls", "shell": "/tmp/sh"}, "another shell"),
        ({"cmd": "ls", "sandbox_permissions": "require_escalated"}, "sandbox"),
        ({"command": ["ls"], "with_escalated_permissions": True}, "sandbox"),
    ],
)
def test_codex_is_asked_about_a_command_that_would_not_run_as_it_was_judged(given: dict[str, Any], why: str) -> None:
    call = read("codex", "PreToolUse", "exec_command", given).call
    assert call is not None and why in call.doubt


def test_what_codex_types_into_a_program_is_no_command_that_a_rule_could_allow() -> None:
    call = read("codex", "PreToolUse", "write_stdin", {"session_id": 7, "chars": "ls\n"}).call
    assert call is not None and call.labels == {"proc.exec"}
    policy = Policy.from_rules([{"allow": {"label": "proc.exec", "command": "read-only"}}])
    assert Layers((policy,)).judge(call.read(Layers((policy,)))).effect is Effect.ASK


def test_gemini_has_words_of_its_own_and_cannot_be_given_other_arguments() -> None:
    gemini, before = HOSTS["gemini"], read("gemini", "BeforeTool", "run_shell_command")
    assert before.moment is HookMoment.BEFORE and before.call is not None and before.call.labels == {"proc.exec"}
    assert told(gemini, before, YES)["decision"] == "allow"
    assert told(gemini, before, NO)["decision"] == "deny" and "not now" in told(gemini, before, NO)["reason"]
    assert not gemini.takes_edits
    assert read("gemini", "AfterTool").moment is HookMoment.AFTER


def test_the_files_of_a_patch_are_judged_however_it_is_handed_over() -> None:
    files = ["docs/new.md", "src/app.py", "src/../../outside.py", "old.txt"]
    for given in ({"input": PATCH}, {"command": ["apply_patch", PATCH]}, {"patch": PATCH.replace("\n", "\r\n")}):
        event = read("codex", "PreToolUse", "apply_patch", given)
        assert event.call is not None and event.call.labels == {"fs.write"}
        assert event.call.reads(event.call.args) == {"paths": files}
    assert patch_paths({"input": "no patch"}) == {"paths": []}
    hidden = PATCH.replace("*** Delete", " *** Delete")
    assert patch_paths({"a": hidden, "b": "*** Begin Patch\n*** Add File: b.txt\n"}) == {"paths": [*files, "b.txt"]}


@pytest.mark.parametrize("agent", HOSTS)
def test_an_mcp_tool_keeps_its_name_and_has_no_label(agent: str) -> None:
    name = "BeforeTool" if agent == "gemini" else "PreToolUse"
    call = read(agent, name, "mcp__github__create_issue", {"title": "x"}).call
    assert call is not None and call.tool == "mcp__github__create_issue" and call.labels == frozenset()


@pytest.mark.parametrize("agent", HOSTS)
@pytest.mark.parametrize("missing", ["session_id", "cwd", "tool_name", "tool_input"])
def test_an_event_without_what_it_needs_is_refused(agent: str, missing: str) -> None:
    name = "BeforeTool" if agent == "gemini" else "PreToolUse"
    event = {**COMMON, "hook_event_name": name, "tool_name": "x", "tool_input": {}}
    del event[missing]
    with pytest.raises(ValueError, match=missing):
        HOSTS[agent].read(event)
