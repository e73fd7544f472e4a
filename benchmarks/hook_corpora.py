"""The shell corpora as a coding agent would call them: its events, through the hook, by the policy that
`signoff init --for AGENT` writes."""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from signoff.cli.coding_policy import coding_policy
from signoff.cli.own_checks import tools
from signoff.outside.outside_gate import CallPermission
from signoff.wiring.hook_answer import HookDesk, HookOptions

_NAMED = {
    "script": re.compile(r"\b(?:npm|yarn|pnpm)(?: -\S+| --prefix \S+)*(?: run)?(?: -\S+)* ([a-z][\w:.-]*)"),
    "environment": re.compile(r"\btox\b[^;&|\n]*? -e ([\w.-]+)"),
    "session": re.compile(r"\bnox\b[^;&|\n]*? (?:-\w*s|--sessions?|-e) \"?([\w.-]+)"),
    "target": re.compile(r"\bmake(?: -\S+)*((?: [a-z][\w.-]*)+)"),
}


def hook_allows(
    commands: Sequence[str], agent: str = "claude-code", *, network: bool = False, project: Path | None = None
) -> list[bool]:
    """Which commands the hook lets run with nobody asked: in a project, or else in one that has everything the policy
    looks for. A policy is written into the project.

    With `network`, the policy also allows what only reads over the network.
    """
    if project is None:
        with tempfile.TemporaryDirectory(prefix="hook-corpora-") as name:
            _lay_out(Path(name), commands)
            return hook_allows(commands, agent, network=network, project=Path(name))
    place = project.resolve()
    (place / "signoff.yaml").write_text(coding_policy(place, agent, network=network), encoding="utf-8")
    return asyncio.run(_judged(place, commands, agent))


def _lay_out(place: Path, commands: Sequence[str]) -> None:
    """Make a project that has everything the policy looks for.

    It requires every tool, and each script, environment, session and target that a command names is there and runs
    something that is not known: whether it is a check has to be told by its name.
    """
    text = "\n".join(commands)
    named = {
        kind: sorted({name for found in at.finditer(text) for name in found[1].split()}) for kind, at in _NAMED.items()
    }
    names = sorted({name for tool in tools() for name in tool.names})
    for file in ("yarn.lock", "pnpm-lock.yaml", *(file for tool in tools() for file in tool.files)):
        (place / file).parent.mkdir(parents=True, exist_ok=True)
        (place / file).touch()
    python = [name for name in names if "/" not in name]
    (place / "pyproject.toml").write_text(
        f"[project]\nname = 'x'\ndependencies = {json.dumps(python)}\n", encoding="utf-8"
    )
    scripts = dict.fromkeys(named["script"], "node x.js")
    package = {"name": "x", "devDependencies": dict.fromkeys(names, "*"), "scripts": scripts}
    (place / "package.json").write_text(json.dumps(package), encoding="utf-8")
    (place / "tox.ini").write_text("".join(f"[testenv:{name}]\n" for name in named["environment"]), encoding="utf-8")
    sessions = "".join(f"@nox.session(name={name!r})\ndef x(session): ...\n" for name in named["session"])
    (place / "noxfile.py").write_text(sessions, encoding="utf-8")
    (place / "Makefile").write_text("".join(f"{name}:\n" for name in named["target"]), encoding="utf-8")


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
