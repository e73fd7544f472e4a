"""Whether the coding agent of this machine is new enough to run exactly what its hook has judged."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from functools import lru_cache

from signoff.outside.coding_agents import CodingAgent

PATIENCE = 15.0
"""How many seconds an agent is given to say its version."""
_VERSION = re.compile(r"(?<![\w.])\d{1,6}(?:\.\d{1,6}){1,3}(?![\w.])")


@dataclass(frozen=True, slots=True)
class VersionCheck:
    """What is wrong with the version of an agent. Both are empty where any version will do, and for a new one."""

    problem: str = ""
    """Why its version is not safe, and what to do."""
    unknown: str = ""
    """Why its version is not known, and what to look for."""


FINE = VersionCheck()


def check_version(agent: CodingAgent) -> VersionCheck:
    """Ask the program that a shell would start. What a person starts elsewhere, such as in an editor, is not seen."""
    return judged_version(agent, _told(shutil.which(agent.program) or "")) if agent.least else FINE


def judged_version(agent: CodingAgent, told: str) -> VersionCheck:
    """Judge what the program says of its version; empty if there is no program, or it says nothing."""
    least, found = ".".join(map(str, agent.least)), _VERSION.search(told)
    use = f"use {least} or newer ({agent.update} updates it)"
    if found is None:
        why = f"`{agent.program} --version` says none" if told else f"there is no `{agent.program}` on your PATH"
        return VersionCheck(unknown=f"it is not known which version of {agent.title} runs ({why}): {use}")
    if tuple(map(int, found[0].split("."))) >= agent.least:
        return FINE
    return VersionCheck(problem=f"this is {agent.title} {found[0]}, and before {least} {agent.flaw}: {use}")


@lru_cache(maxsize=8)
def _told(program: str) -> str:
    if not program:
        return ""
    try:
        done = subprocess.run(
            [program, "--version"],
            cwd=os.path.expanduser("~"),
            env={**os.environ, "DISABLE_AUTOUPDATER": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return "nothing"
    return done.stdout[:1_000].decode(errors="replace") or "nothing"
