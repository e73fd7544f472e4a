"""Find and kill leftover processes of a call on Linux, by an inherited environment variable or resource limit."""

from __future__ import annotations

import os
import selectors
import signal
import time
from collections.abc import Iterator

_ROUNDS = 50
_GRACE = 2.0
"""Seconds to wait until killed processes are gone."""


def started(pid: int) -> int:
    """When a process started, in the kernel's clock ticks; 0 if unknown."""
    found = _stat(pid)
    return found[1] if found is not None else 0


def _stat(pid: int) -> tuple[str, int] | None:
    """State and start time of a process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        return fields[0].decode(), int(fields[19])
    except (OSError, IndexError, ValueError):
        return None


def sweep(mark: str, size: int | None, since: int) -> bool:
    """Kill every process that has the variable `mark`, or exactly `size` as its limit on file size.

    Processes that started before `since` are left alone. Returns whether none is left.
    """
    for _ in range(_ROUNDS):
        found = list(_marked(mark, size, since))
        if not found:
            return True
        killed = [fd for pid, start in found if (fd := _kill(pid, start)) is not None]
        if not killed:
            return False
        with selectors.DefaultSelector() as selector:
            for fd in killed:
                selector.register(fd, selectors.EVENT_READ)
            until = time.monotonic() + _GRACE
            while selector.get_map() and (left := until - time.monotonic()) > 0:
                for key, _ in selector.select(left):
                    selector.unregister(key.fd)
        for fd in killed:
            os.close(fd)
    return False


def _marked(mark: str, size: int | None, since: int) -> Iterator[tuple[int, int]]:
    """Pid and start time of each living process of the call."""
    variable = mark.encode()
    limit = f"Max file size {size} {size} bytes".split()
    try:
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return
    for pid in pids:
        found = _stat(pid)
        if found is None or found[0] in "ZX" or found[1] < since:
            continue
        if variable in _lines(pid, "environ", b"\0") or any(
            line.decode("ascii", "replace").split() == limit for line in _lines(pid, "limits", b"\n")
        ):
            yield pid, found[1]


def _lines(pid: int, name: str, end: bytes) -> list[bytes]:
    try:
        with open(f"/proc/{pid}/{name}", "rb") as file:
            return file.read().split(end)
    except OSError:
        return []


def _kill(pid: int, start: int) -> int | None:
    """Kill exactly this process, by pidfd, so that a reused pid is not hit.

    Returns a descriptor that becomes readable when the process is gone; None if it cannot be killed.
    """
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return None
    try:
        if started(pid) == start:
            signal.pidfd_send_signal(fd, signal.SIGKILL)
    except ProcessLookupError:
        return fd
    except OSError:
        os.close(fd)
        return None
    return fd
