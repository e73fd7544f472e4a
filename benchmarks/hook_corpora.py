"""The shell corpora as a coding agent would call them: its events, through the hook, by the policy that
`signoff init --for AGENT` writes."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

from signoff.cli.coding_policy import BY_FILE, coding_policy
from signoff.outside.outside_gate import CallPermission
from signoff.wiring.hook_answer import HookDesk, HookOptions


def hook_allows(commands: Sequence[str], agent: str = "claude-code") -> list[bool]:
    """Which commands the hook lets run with nobody asked, in a project that has everything the policy looks for."""
    with tempfile.TemporaryDirectory(prefix="hook-corpora-") as name:
        place = Path(name).resolve()
        for file in BY_FILE:
            (place / file).touch()
        (place / "signoff.yaml").write_text(coding_policy(place, agent), encoding="utf-8")
        return asyncio.run(_judged(place, commands, agent))


async def _judged(place: Path, commands: Sequence[str], agent: str) -> list[bool]:
    desk = HookDesk()
    try:
        return [await _allows(desk, place, number, command, agent) for number, command in enumerate(commands)]
    finally:
        desk.close()


async def _allows(desk: HookDesk, place: Path, number: int, command: str, agent: str) -> bool:
    event = {
        "session_id": "corpora",
        "transcript_path": "",
        "cwd": str(place),
        "permission_mode": "default",
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": command, "description": "one of the corpora"},
        "tool_use_id": f"t{number}",
    }
    options = HookOptions(agent=agent, project=str(place), store="memory:")
    question = desk.read(json.dumps(event).encode(), options, {})
    assert question is not None
    said: CallPermission | None = await question.gate.at_once(question.call)
    return said is not None and said.allowed
