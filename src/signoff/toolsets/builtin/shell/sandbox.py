"""An optional sandbox around commands: bubblewrap (`bwrap`), if it is installed.

Inside, everything is read-only (a command that a person approved may write in the root directory), there is no network
unless it is switched on, `/tmp` and `/run` are empty but for the environment of this Python, other processes are
invisible, and nothing outlives the call.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath
from typing import Literal

from signoff.errors import WrongUse
from signoff.toolsets.builtin.shell.environment import bare_environment, find_program

Mode = Literal["auto", "on", "off"]
INSTALL = "install bubblewrap: `apt install bubblewrap`, `dnf install bubblewrap`, `pacman -S bubblewrap`"
_PROBE_SECONDS = 10
_HIDDEN = ("/tmp", "/run")


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A sandbox that works on this machine."""

    program: str
    """The path of bwrap."""
    root: str
    """The directory that approved commands may write in; a real path."""
    network: bool = False

    def words(self, directory: str, *, writable: bool, sealed: Sequence[str] = ()) -> list[str]:
        """The words in front of a command that runs in `directory`. Nothing can write to the `sealed` directories.

        They cannot be moved away either: a mount point cannot be renamed, so the directories above them are mounted
        too.
        """
        open_or_not = "--bind" if writable else "--ro-bind"
        return [
            self.program,
            *("--unshare-user-try", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
            *(() if self.network else ("--unshare-net",)),
            *("--die-with-parent", "--new-session", "--cap-drop", "ALL"),
            *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
            *(word for one in _HIDDEN for word in ("--tmpfs", one)),  # hides the Unix sockets of other programs
            *(word for one in _own_environment() for word in ("--ro-bind", one, one)),
            *(open_or_not, self.root, self.root),  # after /tmp, because the root may be below it
            *(word for one in self._above(sealed) for word in (open_or_not, one, one)),
            *(word for one in sealed for word in ("--ro-bind", one, one)),
            *("--chdir", directory, "--"),
        ]

    def _above(self, sealed: Sequence[str]) -> list[str]:
        """The directories between the root and the sealed ones, topmost first: a later mount covers what is below."""
        within = (PurePosixPath(one).parents for one in sealed if one.startswith(f"{self.root}/"))
        return sorted({str(one) for parents in within for one in parents if PurePosixPath(self.root) in one.parents})

    @property
    def text(self) -> str:
        """What the sandbox means for a command that a person approves, for the card."""
        reach = "with network" if self.network else "no network"
        return f"runs in a sandbox: writes only below {self.root}, {reach}"


def _own_environment() -> list[str]:
    """The directories of this Python that would be hidden: its programs are first on the PATH of most commands."""
    own = dict.fromkeys((sys.base_prefix, sys.prefix))
    return [one for one in own if any(one.startswith(f"{hidden}/") for hidden in _HIDDEN)]


def open_sandbox(mode: Mode, root: str, *, network: bool = False) -> Sandbox | None:
    """The sandbox for a root directory; None if it is `off`, or if it is `auto` and none works.

    Raises `WrongUse` if it is `on` and does not work; the message says what to do.
    """
    if mode == "off":
        return None
    if mode not in ("auto", "on"):
        raise WrongUse(f"sandbox is `auto`, `on` or `off`, not {mode!r}")
    if root == "/":
        if mode == "on":
            raise WrongUse(
                "sandbox is on, but the root directory is the whole file system; name a directory, or use sandbox: off"
            )
        return None
    found = find_program("bwrap")
    if not found.path:
        if mode == "on":
            raise WrongUse(f"sandbox is on, but bwrap cannot be run ({found.why}); {INSTALL}, or use sandbox: off")
        return None
    sandbox = Sandbox(found.path, root, network)
    trouble = probe(tuple(sandbox.words(root, writable=False)))
    if trouble and mode == "on":
        raise WrongUse(
            f"sandbox is on, but bwrap does not work here: {trouble}; allow user namespaces, or use sandbox: off"
        )
    return None if trouble else sandbox


@lru_cache(maxsize=64)
def probe(words: Sequence[str]) -> str:
    """Why a sandbox with these words does not work here; empty if it does. Namespaces may be forbidden."""
    harmless = find_program("true")
    if not harmless.path:
        return "there is no program to try it with"
    try:
        done = subprocess.run(
            [*words, harmless.name],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PROBE_SECONDS,
            env=bare_environment({}, directory="/"),
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if done.returncode == 0 else (done.stderr.strip() or f"exit code {done.returncode}")
