"""Codex's hooks: PreToolUse, PostToolUse, PermissionRequest.

It understands a `deny`, an exit code of 2, or an `allow` together with the input to run; a bare `allow` is an error to
it, and the call goes on by its own rules. So a yes always names the input.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from signoff.outside.hook_event import HookEvent, HookMoment, HookReply, read_event, said
from signoff.outside.outside_call import ReadsArguments, nothing_read
from signoff.outside.outside_gate import CallPermission
from signoff.outside.patch_paths import patch_paths

PATCH = "apply_patch"
LABELS: Mapping[str, frozenset[str]] = {
    "Bash": frozenset({"proc.exec"}),
    "shell": frozenset({"proc.exec"}),
    "exec_command": frozenset({"proc.exec"}),
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
    """Codex."""

    name = "codex"
    title = "Codex"
    takes_edits = True

    def read(self, event: Mapping[str, Any]) -> HookEvent:
        """As `HookHost.read`."""
        return read_event(self.name, event, MOMENTS, LABELS, _reads)

    def reply(self, event: HookEvent, permission: CallPermission) -> HookReply:
        """As `HookHost.reply`."""
        output: dict[str, Any] = {"hookEventName": event.name}
        if permission.allowed:
            output |= {"permissionDecision": "allow", "updatedInput": dict(permission.args)}
        else:
            output |= {"permissionDecision": "deny", "permissionDecisionReason": said(permission)}
        return HookReply(out=json.dumps({"hookSpecificOutput": output}))


def _reads(tool: str, where: str) -> ReadsArguments:
    return patch_paths if tool == PATCH else nothing_read
