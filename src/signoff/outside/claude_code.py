"""Claude Code's hooks: PreToolUse, PostToolUse, PostToolUseFailure, PermissionRequest.

An exit code of 2, or `deny`, blocks a call in every permission mode; whatever else is wrong with a hook lets it run
where the user bypasses permissions. So everything that is not a clear yes is told as a no.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from signoff.outside.hook_event import Fields, HookEvent, HookMoment, HookReply, beginning, said
from signoff.outside.outside_call import OutsideCall, nothing_read
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
"""What its own tools do."""
MOMENTS: Mapping[str, HookMoment] = {
    "PreToolUse": HookMoment.BEFORE,
    "PostToolUse": HookMoment.AFTER,
    "PostToolUseFailure": HookMoment.AFTER,
    "PermissionRequest": HookMoment.PROMPT,
}


class ClaudeCode:
    """Claude Code."""

    name = "claude-code"
    title = "Claude Code"
    takes_edits = True

    def read(self, event: Mapping[str, Any]) -> HookEvent:
        """As `HookHost.read`."""
        fields = Fields(event)
        name = fields.text("hook_event_name")
        moment = MOMENTS.get(name, HookMoment.OTHER)
        if moment is HookMoment.OTHER:
            return HookEvent(moment=moment, name=name)
        tool = fields.text("tool_name")
        inner = fields.text("agent_type", "") or fields.text("agent_id", "")
        call = OutsideCall(
            agents=(self.name, inner) if inner else (self.name,),
            session=f"{self.name}:{fields.text('session_id')}",
            call_id=fields.text("tool_use_id", "" if moment is HookMoment.PROMPT else None),
            tool=tool,
            args=fields.mapping("tool_input"),
            directory=fields.directory(),
            labels=LABELS.get(tool, frozenset()),
            reads=search_paths(fields.directory(), tool) if tool in SEARCHES else nothing_read,
        )
        error = None
        if name == "PostToolUseFailure":
            error = beginning(event.get("error", "it failed"))
        return HookEvent(
            moment=moment,
            name=name,
            call=call,
            error=error,
            preview=beginning(event.get("tool_response", "")),
            mode=fields.text("permission_mode", ""),
        )

    def reply(self, event: HookEvent, permission: CallPermission) -> HookReply:
        """As `HookHost.reply`."""
        if event.moment is HookMoment.PROMPT:
            decision: dict[str, Any] = {"behavior": "allow" if permission.allowed else "deny"}
            if permission.allowed and permission.edited:
                decision["updatedInput"] = dict(permission.args)
            if not permission.allowed:
                decision["message"] = said(permission)
            return _printed({"hookEventName": event.name, "decision": decision})
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
