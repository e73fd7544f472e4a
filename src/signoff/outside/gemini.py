"""Gemini CLI's hooks: BeforeTool and AfterTool. A `deny` or an exit code of 2 blocks; anything else goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any

from signoff.outside.hook_event import Fields, HookEvent, HookMoment, HookReply, beginning, said
from signoff.outside.outside_call import OutsideCall, nothing_read
from signoff.outside.outside_gate import CallPermission
from signoff.outside.search_paths import SEARCHES, search_paths

LABELS: Mapping[str, frozenset[str]] = {
    "run_shell_command": frozenset({"proc.exec"}),
    "write_file": frozenset({"fs.write"}),
    "replace": frozenset({"fs.write"}),
    "read_file": frozenset({"fs.read"}),
    "read_many_files": frozenset({"fs.read"}),
    "list_directory": frozenset({"fs.read"}),
    "glob": frozenset({"fs.read"}),
    "search_file_content": frozenset({"fs.read"}),
    "grep_search": frozenset({"fs.read"}),
    "web_fetch": frozenset({"net.egress"}),
    "google_web_search": frozenset({"net.egress"}),
}
MOMENTS: Mapping[str, HookMoment] = {"BeforeTool": HookMoment.BEFORE, "AfterTool": HookMoment.AFTER}


def _reads(tool: str, where: str) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    """What a tool looks at, besides the arguments that are named as paths."""
    if tool == "read_many_files":
        return lambda args: {"include_paths": args.get("include", [])}
    return search_paths(where, tool) if tool in SEARCHES else nothing_read


class Gemini:
    """Gemini CLI."""

    name = "gemini"
    title = "Gemini CLI"
    takes_edits = False

    def read(self, event: Mapping[str, Any]) -> HookEvent:
        """As `HookHost.read`. It gives calls no ids: the moment and the arguments tell them apart."""
        fields = Fields(event)
        name = fields.text("hook_event_name")
        moment = MOMENTS.get(name, HookMoment.OTHER)
        if moment is HookMoment.OTHER:
            return HookEvent(moment=moment, name=name)
        tool, args = fields.text("tool_name"), fields.mapping("tool_input")
        where = fields.directory()
        inner = args.get("dir_path") or args.get("directory")
        if tool == "run_shell_command" and isinstance(inner, str):
            where = os.path.realpath(os.path.join(where, inner))
        call = OutsideCall(
            agents=(self.name,),
            session=f"{self.name}:{fields.text('session_id')}",
            call_id=fields.text("tool_use_id", "") or fields.text("timestamp", ""),
            tool=tool,
            args=args,
            directory=where,
            labels=LABELS.get(tool, frozenset()),
            reads=_reads(tool, where),
        )
        return HookEvent(moment=moment, name=name, call=call, preview=beginning(event.get("tool_response", "")))

    def reply(self, event: HookEvent, permission: CallPermission) -> HookReply:
        """As `HookHost.reply`."""
        decision = "allow" if permission.allowed else "deny"
        return HookReply(out=json.dumps({"decision": decision, "reason": said(permission)}))
