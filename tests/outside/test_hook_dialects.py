"""Codex and Gemini CLI by the shapes of their events, as their documentation gives them: the programs were not run."""

from __future__ import annotations

import json
from typing import Any

import pytest

from signoff.outside.hook_event import HookEvent, HookHost, HookMoment
from signoff.outside.hook_hosts import HOSTS
from signoff.outside.outside_gate import CallPermission
from signoff.outside.patch_paths import patch_paths

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
