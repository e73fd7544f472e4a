"""Codex's hooks: PreToolUse, PostToolUse, PermissionRequest.

Codex understands `deny`, exit code 2, or `allow` together with the input to run. A bare `allow` is an error to it, and
the call continues by its own rules. So an allow always names the input.
"""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from signoff.outside.hook_event import HookEvent, HookMoment, HookReply, read_event, said
from signoff.outside.outside_call import ReadsArguments, nothing_read
from signoff.outside.outside_gate import CallPermission
from signoff.outside.patch_paths import patch_paths

PATCH = "apply_patch"
TYPES = "write_stdin"
"""Types into a program that already runs. Its effect is unknown, so it has no command that rules could match."""
RUNS = frozenset({"Bash", "shell", "shell_command", "local_shell", "exec_command"})
SHELLS = frozenset({"bash", "sh", "zsh", "/bin/bash", "/bin/sh", "/bin/zsh", "/usr/bin/bash", "/usr/bin/zsh"})
LABELS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys((*RUNS, TYPES), frozenset({"proc.exec"})),
    PATCH: frozenset({"fs.write"}),
    "Read": frozenset({"fs.read"}),
    "Edit": frozenset({"fs.write"}),
    "Write": frozenset({"fs.write"}),
    "web_search": frozenset({"net.egress"}),
}
MOMENTS: Mapping[str, HookMoment] = {
    "PreToolUse": HookMoment.BEFORE,
    "PostToolUse": HookMoment.AFTER,
    "PermissionRequest": HookMoment.PROMPT,
}


class Codex:
    """The hook dialect of Codex."""

    name = "codex"
    title = "Codex"
    takes_edits = True

    def read(self, event: Mapping[str, Any]) -> HookEvent:
        """See `HookHost.read`."""
        found = read_event(self.name, event, MOMENTS, LABELS, _reads)
        call = found.call
        if call is None or call.tool not in RUNS:
            return found
        inner = call.args.get("workdir")
        where = os.path.realpath(os.path.join(call.directory, inner)) if isinstance(inner, str) else call.directory
        return replace(found, call=replace(call, directory=where, doubt=_doubt(call.args)))

    def reply(self, event: HookEvent, permission: CallPermission) -> HookReply:
        """See `HookHost.reply`."""
        output: dict[str, Any] = {"hookEventName": event.name}
        if permission.allowed:
            output |= {"permissionDecision": "allow", "updatedInput": _as_given(event, permission.args)}
        else:
            output |= {"permissionDecision": "deny", "permissionDecisionReason": said(permission)}
        return HookReply(out=json.dumps({"hookSpecificOutput": output}))


def _reads(tool: str, where: str) -> ReadsArguments:
    return patch_paths if tool == PATCH else command_line if tool in RUNS else nothing_read


def command_line(args: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a rule with `command` matches: `cmd`, the words of a list, or the script of a shell in that list."""
    if isinstance(line := args.get("cmd"), str):
        return {"command": line}
    words = args.get("command")
    if not isinstance(words, list):
        return {}
    words = cast("list[Any]", words)
    if not all(isinstance(word, str) for word in words):
        return {"command": None}  # no rule that names commands matches it
    if len(words) == 3 and words[0] in SHELLS and words[1] in ("-c", "-lc"):
        return {"command": words[2]}
    return {"command": shlex.join(words)}


def _doubt(args: Mapping[str, Any]) -> str:
    """Return why a command is asked about although a rule allows it: it would not run as it was judged. Else empty."""
    if "cmd" in args and "command" in args:
        return "it names two commands"
    if (shell := args.get("shell")) not in (None, *SHELLS):
        return f"it runs in another shell: {shell}"
    if args.get("with_escalated_permissions") or args.get("sandbox_permissions") not in (None, "", "use_default"):
        return "it would leave the agent's own sandbox"
    return ""


def _as_given(event: HookEvent, args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the input to run in the form that the agent gave: a command as a list of words stays a list."""
    given = event.call.args.get("command") if event.call is not None else None
    if isinstance(given, list) and isinstance(line := args.get("command"), str):
        return {**args, "command": ["bash", "-lc", line]}
    return dict(args)
