"""Run a command that a person approved: in a shell, exactly as it was shown to them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Sequence

from signoff.toolsets.builtin.shell.environment import approved_environment
from signoff.toolsets.builtin.shell.sandbox import Sandbox
from signoff.toolsets.builtin.shell.subprocesses import (
    USUAL,
    CallProcesses,
    CommandResult,
    ProcessLimits,
    ended,
    in_thread,
)


async def run_approved(
    command: str,
    *,
    root: str,
    limits: ProcessLimits = USUAL,
    sandbox: Sandbox | None = None,
    keep: Iterable[str] = (),
    programs: Sequence[str] = (),
) -> CommandResult:
    """Run `command` in a shell in the directory `root`. All processes it started have ended when this returns.

    `keep` names our environment variables that it gets although their names look like secrets. `programs` are
    directories that come first in its PATH.
    """

    def work(call: CallProcesses) -> subprocess.Popen[bytes] | None:
        words = [*(sandbox.words(root, writable=True) if sandbox is not None else ()), *shell_words(command)]
        try:
            child = call.spawn(
                [*call.limit_words(), *words],
                directory=root,
                environment=approved_environment(os.environ, keep=keep, programs=programs),
                stdin=subprocess.DEVNULL,
                stdout=call.out,
                stderr=call.err,
            )
        except (OSError, ValueError) as error:
            call.say(f"signoff: the command could not be started: {error}")
            return None
        call.wait([child])
        return child

    def finish(call: CallProcesses, child: subprocess.Popen[bytes] | None) -> CommandResult:
        return call.outcome(126 if child is None else ended(child) or 0)

    return await in_thread(limits, work, finish)


def shell_words(command: str) -> list[str]:
    """The shell without any startup files, and the command as one argument."""
    if os.access("/bin/bash", os.X_OK):
        return ["/bin/bash", "--noprofile", "--norc", "-c", "--", command]
    return ["/bin/sh", "-c", "--", command]
