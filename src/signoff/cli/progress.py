"""Live lines about what an agent's calls do, for `run` and `demo`."""

from __future__ import annotations

import json
from typing import Any

import click

from signoff.core.card import safe_summary
from signoff.core.event import CallEvent, Happened
from signoff.core.redact import redact
from signoff.core.request import ApprovalRequest
from signoff.core.visible import visible

LONGEST = 62
"""So that a line with its mark fits 80 columns."""

_MARKS = {
    Happened.ALLOWED: ("allowed", "green"),
    Happened.REMEMBERED: ("remembered", "green"),
    Happened.APPROVED: ("approved", "green"),
    Happened.REVIEWED: ("reviewed", "green"),
    Happened.AUTO_APPROVED: ("auto-approved", "yellow"),
    Happened.DENIED: ("denied", "red"),
    Happened.FAILED: ("failed", "red"),
}


def print_event(event: CallEvent) -> None:
    """One line a step, on standard error. Asking and running are left to the card and the next line."""
    if event.what not in _MARKS:
        return
    word, colour = _MARKS[event.what]
    click.echo(f"  {click.style(f'{word:<13}', fg=colour)} {one_line(event)}{_because(event)}", err=True)


def event_json(event: CallEvent) -> str:
    """The same step for programs, secrets masked."""
    row: dict[str, Any] = {
        "event": str(event.what),
        "tool": event.call.tool,
        "call": event.call.path,
        "worker": list(event.call.worker),
        "args": redact(event.call.args).args,
        "rules": list(event.verdict.rules) if event.verdict else [],
        "reason": event.text or (event.verdict.reason if event.verdict else ""),
    }
    if event.request is not None:
        row["request"] = event.request.id
    if event.by:
        row["by"] = event.by
    return json.dumps(row, ensure_ascii=False, default=str)


def one_line(event: CallEvent) -> str:
    """The call on one short line, safe to print."""
    call = event.call
    line = safe_summary(ApprovalRequest(tool_call_id=call.call_id, tool_name=call.tool, args=call.args, call=call))
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"


def _because(event: CallEvent) -> str:
    match event.what:
        case Happened.DENIED:
            return f"\n                by {visible(event.by)}: {visible(event.text)}"
        case Happened.FAILED:
            return f"\n                {visible(event.text)}"
        case Happened.ALLOWED if event.verdict is not None and event.verdict.rules:
            return click.style(f"\n                by rule {', '.join(event.verdict.rules)}", dim=True)
        case Happened.APPROVED if event.request is not None and event.request.decision is not None:
            by = event.request.decision.by
            edited = ", arguments edited" if event.request.decision.edited_args is not None else ""
            return click.style(f"\n                by {visible(str(by))}{edited}", dim=True)
        case _:
            return ""
