"""Find the process of the agent that runs a hook. While it is alive, a call it was allowed may still be running."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from signoff.core.run import Process
from signoff.processes import other_process

SHELLS = frozenset({"sh", "dash", "bash", "zsh", "ksh", "fish", "busybox"})
"""Names of shells. An agent starts its hooks through one of them."""


def agent_process(start: int, now: datetime) -> Process:
    """Return the first ancestor process that is no shell; the parent, if the system does not tell process names."""
    pid = _parent(start) or os.getppid()
    while _name(pid) in SHELLS and (above := _parent(pid)) > 1:
        pid = above
    return other_process(pid, now)


def _stat(pid: int) -> tuple[str, list[str]]:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return "", []
    head, _, rest = text.rpartition(")")
    return head.partition("(")[2], rest.split()


def _name(pid: int) -> str:
    return _stat(pid)[0]


def _parent(pid: int) -> int:
    fields = _stat(pid)[1]
    return int(fields[1]) if len(fields) > 1 else 0
