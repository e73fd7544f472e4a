"""Codex's hooks: PreToolUse, PostToolUse, PermissionRequest.

It understands a `deny`, an exit code of 2, or an `allow` together with the input to run; a bare `allow` is an error to
it, and the call goes on by its own rules. So a yes always names the input.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from signoff.outside.hook_event import Fields, HookEvent, HookMoment, HookReply, beginning, said
from signoff.outside.outside_call import OutsideCall, nothing_read
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
            reads=patch_paths if tool == PATCH else nothing_read,
        )
        mode, preview = fields.text("permission_mode", ""), beginning(event.get("tool_response", ""))
        return HookEvent(moment=moment, name=name, call=call, preview=preview, mode=mode)

    def reply(self, event: HookEvent, permission: CallPermission) -> HookReply:
        """As `HookHost.reply`."""
        output: dict[str, Any] = {"hookEventName": event.name}
        if event.moment is HookMoment.PROMPT:
            decision: dict[str, Any] = {"behavior": "allow" if permission.allowed else "deny"}
            if not permission.allowed:
                decision["message"] = said(permission)
            output["decision"] = decision
        elif permission.allowed:
            output |= {"permissionDecision": "allow", "updatedInput": dict(permission.args)}
        else:
            output |= {"permissionDecision": "deny", "permissionDecisionReason": said(permission)}
        return HookReply(out=json.dumps({"hookSpecificOutput": output}))
