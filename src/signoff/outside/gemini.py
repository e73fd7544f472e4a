"""Gemini CLI's hooks: BeforeTool and AfterTool. `deny` or exit code 2 blocks a call; anything else lets it run."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from signoff.core.canonical import digest
from signoff.outside.hook_event import HookEvent, HookMoment, HookReply, read_event, said
from signoff.outside.outside_call import ReadsArguments, nothing_read
from signoff.outside.outside_gate import CallPermission
from signoff.outside.search_paths import SEARCHES, search_paths

SHELL = "run_shell_command"
LABELS: Mapping[str, frozenset[str]] = {
    SHELL: frozenset({"proc.exec"}),
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


def _reads(tool: str, where: str) -> ReadsArguments:
    """Return what reads the paths that a tool uses, besides the arguments that are named as paths."""
    if tool == "read_many_files":
        return lambda args: {"include_paths": args.get("include", [])}
    return search_paths(where, tool) if tool in SEARCHES else nothing_read


class Gemini:
    """The hook dialect of Gemini CLI."""

    name = "gemini"
    title = "Gemini CLI"
    takes_edits = False

    def read(self, event: Mapping[str, Any]) -> HookEvent:
        """See `HookHost.read`. Calls have no ids here: before they run, timestamp and arguments stand in for one."""
        if "tool_use_id" not in event:
            is_after = MOMENTS.get(str(event.get("hook_event_name"))) is HookMoment.AFTER
            made = f"{event.get('timestamp', '')}.{digest(event.get('tool_input'))[:16]}"
            event = {**event, "tool_use_id": "" if is_after else made}
        found = read_event(self.name, event, MOMENTS, LABELS, _reads)
        call = found.call
        inner = (call.args.get("dir_path") or call.args.get("directory")) if call is not None else None
        if call is not None and call.tool == SHELL and isinstance(inner, str):
            where = os.path.realpath(os.path.join(call.directory, inner))
            return replace(found, call=replace(call, directory=where))
        return found

    def reply(self, event: HookEvent, permission: CallPermission) -> HookReply:
        """See `HookHost.reply`."""
        decision = "allow" if permission.allowed else "deny"
        return HookReply(out=json.dumps({"decision": decision, "reason": said(permission)}))
