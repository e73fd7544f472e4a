"""Which process this is, and whether another one is still alive: the lease behind claims and runs."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

from signoff.core.run import Process

BEAT = timedelta(seconds=10)
"""Heartbeat interval of a process that holds something."""
LEASE = timedelta(seconds=40)
"""After this long without a heartbeat, a process on another machine counts as dead."""


def steady_seconds() -> float:
    """Return monotonic seconds, unaffected by clock changes. With CLOCK_BOOTTIME they also pass during a suspend."""
    return time.clock_gettime(_STEADY) if _STEADY is not None else time.monotonic()


_STEADY: int | None = getattr(time, "CLOCK_BOOTTIME", None)


def this_process(name: str, now: datetime) -> Process:
    """Describe this process. Its id says which one it is; `name` makes it unique."""
    pid, host = os.getpid(), _host()
    return Process(id=f"{host}/{pid}/{name}", host=host, pid=pid, born=_born(pid), seen_at=now)


def other_process(pid: int, now: datetime) -> Process:
    """Describe another process of this machine, under a name made of what identifies it."""
    host, born = _host(), _born(pid)
    return Process(id=f"{host}/{pid}/{born}", host=host, pid=pid, born=born, seen_at=now)


def seen(process: Process, now: datetime) -> Process:
    return replace(process, seen_at=now)


def is_local(process: Process) -> bool:
    """Return whether it was started on this machine since its last boot: then the system knows whether it is alive."""
    return process.host == _host()


def is_alive(process: Process | None, now: datetime) -> bool:
    """Return whether a process is alive. Elsewhere than on this machine, its last heartbeat decides.

    On this machine the system knows. A reused PID is recognised by the start time of its process.
    """
    if process is None:
        return False
    if is_local(process):
        return _exists(process.pid) and (_born(process.pid) in ("", process.born) or not process.born)
    return now - process.seen_at < LEASE


def _host() -> str:
    """Identify this machine since its boot, and its PID namespace (containers have their own)."""
    parts = [os.uname().nodename]
    try:
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()[:8])
        parts.append(os.readlink("/proc/self/ns/pid").strip("pid:[]"))
    except OSError:  # not Linux
        pass
    return "/".join(parts)


def _born(pid: int) -> str:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]  # field 22: clock ticks from boot to the start of the process


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return not _is_zombie(pid)


def _is_zombie(pid: int) -> bool:
    """Return whether the process is dead and its parent has not reaped it yet."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] in ("Z", "X")
