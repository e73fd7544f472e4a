"""Settings files of coding agents: where hooks are installed, and the entries to write."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast

from signoff.outside.coding_agents import AGENTS, CodingAgent, HookedOn
from signoff.outside.json_edit import read_json, values_at, with_item, without_items

LAUNCHER = "hook_launcher.py"
"""File name by which our own hooks are recognised."""
MARGIN = timedelta(seconds=60)
"""How much longer the agent's timeout is than the hook's: the hook has to give up first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookPlace:
    """A settings file of an agent that lists hooks."""

    host: CodingAgent
    file: str
    project: str = ""
    """The project's directory, if the file belongs to one."""

    @property
    def agent(self) -> str:
        return self.host.name


def user_places(home: str) -> Mapping[str, HookPlace]:
    """Return the settings files for all of a user's work, by agent."""
    return {name: HookPlace(host=one, file=os.path.join(home, one.user_file)) for name, one in AGENTS.items()}


def project_places(directory: str) -> Mapping[str, HookPlace]:
    """Return the settings files for one project, by agent."""
    return {
        name: HookPlace(host=one, file=os.path.join(directory, one.project_file), project=directory)
        for name, one in AGENTS.items()
    }


def hook_command(
    agent: str,
    launcher: str,
    wait: timedelta,
    *,
    project: str = "",
    store: str = "",
    server: str = "",
    token_file: str = "",
) -> str:
    """Return the command line that an agent's shell runs."""
    words = [sys.executable, "-I", launcher, agent, "--limit", f"{(wait + MARGIN / 2).total_seconds():g}"]
    words += ["--project", project] if project else []
    words += ["--store", store] if store else []
    words += ["--server", server, "--token-file", token_file] if server else []
    return f"{shlex.join(words)} || exit 2"


def installed(text: str, place: HookPlace, command: str, wait: timedelta, on: HookedOn = HookedOn.EVERY_CALL) -> str:
    """Return the file's text with our hook for each event, once, and everything else as it was."""
    text = uninstalled(text, place)
    timeout = (wait + MARGIN).total_seconds() * place.host.unit
    entry = {"matcher": "*", "hooks": [{"type": "command", "command": command, "timeout": int(timeout)}]}
    for event in place.host.events[on]:
        text = with_item(text, place.file, ("hooks", event), entry)
    return text


def uninstalled(text: str, place: HookPlace) -> str:
    """Return the file's text without our hooks."""
    if not text.strip():
        return text
    for event in hook_events(text, place):
        path = ("hooks", event)
        found = values_at(text, place.file, path)
        text = without_items(text, place.file, path, [at for at, one in enumerate(found) if _is_ours(one)])
    return text


def hook_events(text: str, place: HookPlace) -> list[str]:
    """Return the events that the file has hooks for."""
    node = read_json(text, place.file).member("hooks")
    return [name for name, _, _ in node.members] if node is not None else []


def commands_in(text: str, place: HookPlace) -> Iterator[tuple[str, str, float]]:
    """Yield each hook: its event, its command, and its timeout in seconds (0: none is given)."""
    for event in hook_events(text, place) if text.strip() else ():
        for group in values_at(text, place.file, ("hooks", event)):
            for one in _hooks_of(group):
                timeout = one.get("timeout", 0)
                seconds = timeout / place.host.unit if isinstance(timeout, int | float) else 0.0
                yield event, str(one.get("command", "")), seconds


def _hooks_of(group: Any) -> list[Mapping[str, Any]]:
    found = cast("Mapping[str, Any]", group).get("hooks") if isinstance(group, dict) else None
    hooks = cast("list[Any]", found) if isinstance(found, list) else []
    return [cast("Mapping[str, Any]", one) for one in hooks if isinstance(one, dict)]


def _is_ours(group: Any) -> bool:
    """Return whether a group holds only hooks of ours."""
    hooks = _hooks_of(group)
    return bool(hooks) and all(is_own_command(str(one.get("command", ""))) for one in hooks)


def is_own_command(command: str) -> bool:
    """Return whether a hook is ours."""
    return LAUNCHER in command
