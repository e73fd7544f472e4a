"""Claude Code's hooks: PreToolUse, PostToolUse, PostToolUseFailure, PermissionRequest.

Exit code 2 or `deny` blocks a call in every permission mode. Any other failure of a hook lets the call run if the user
bypasses permissions. So everything but a clear yes is reported as a denial.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from signoff.outside.hook_event import HookEvent, HookMoment, HookReply, read_event, said
from signoff.outside.outside_call import ReadsArguments, nothing_read
from signoff.outside.outside_gate import CallPermission
from signoff.outside.search_paths import SEARCHES, search_paths

LABELS: Mapping[str, frozenset[str]] = {
    "Bash": frozenset({"proc.exec"}),
    "Edit": frozenset({"fs.write"}),
    "MultiEdit": frozenset({"fs.write"}),
    "Write": frozenset({"fs.write"}),
    "NotebookEdit": frozenset({"fs.write"}),
    "Read": frozenset({"fs.read"}),
    "NotebookRead": frozenset({"fs.read"}),
    "Glob": frozenset({"fs.read"}),
    "Grep": frozenset({"fs.read"}),
    "LS": frozenset({"fs.read"}),
    "WebFetch": frozenset({"net.egress"}),
    "WebSearch": frozenset({"net.egress"}),
}
"""The capability labels of its own tools."""
MOMENTS: Mapping[str, HookMoment] = {
    "PreToolUse": HookMoment.BEFORE,
    "PostToolUse": HookMoment.AFTER,
    "PostToolUseFailure": HookMoment.AFTER,
    "PermissionRequest": HookMoment.PROMPT,
}

DIALOGS = frozenset({"AskUserQuestion", "ExitPlanMode"})
"""Tools by which it talks to its user. Allowing one would answer for the user, so allowed ones are left to the user."""


class ClaudeCode:
    """The hook dialect of Claude Code."""

    name = "claude-code"
    title = "Claude Code"
    takes_edits = True

    def read(self, event: Mapping[str, Any]) -> HookEvent:
        """See `HookHost.read`."""
        return read_event(self.name, event, MOMENTS, LABELS, _reads)

    def reply(self, event: HookEvent, permission: CallPermission) -> HookReply:
        """See `HookHost.reply`. For `DIALOGS` that are allowed, the reply is empty."""
        if permission.allowed and event.call is not None and event.call.tool in DIALOGS:
            return HookReply()
        output: dict[str, Any] = {
            "hookEventName": event.name,
            "permissionDecision": "allow" if permission.allowed else "deny",
            "permissionDecisionReason": said(permission),
        }
        if permission.allowed and permission.edited:
            output["updatedInput"] = dict(permission.args)
        return _printed(output)


def _printed(output: Mapping[str, Any]) -> HookReply:
    return HookReply(out=json.dumps({"hookSpecificOutput": output}))


def _reads(tool: str, where: str) -> ReadsArguments:
    return search_paths(where, tool) if tool in SEARCHES else nothing_read
