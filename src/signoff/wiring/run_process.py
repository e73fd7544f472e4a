"""`RunProcess`: resumes a run in a subprocess, in the directory where it was started."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress

from signoff.core.exit_codes import WAITING, WRONG_USE
from signoff.core.run import SavedRun
from signoff.core.safe_text import safe_text
from signoff.errors import RunError, WrongUse
from signoff.store.chosen_store import VARIABLE

COMMAND = (sys.executable, "-P", "-c", "from signoff.cli.main import main; main()")
"""The command that starts this program again. `-P`: nothing is imported from the working directory by itself."""
GRACE = 5.0
"""Timeout in seconds for the process to suspend its run before it is killed."""
LONGEST = 300
LARGEST = 16_384
"""How many bytes of the end of its stderr are kept."""


class RunProcess:
    """Executes a segment of a run in a process of its own. The process runs in the run's directory, with its modules.

    The store's address is passed in the environment, not in the arguments: it may hold a password, and everybody can
    read arguments.
    """

    secrets = ()

    def __init__(self, directory: str, store: str) -> None:
        self._directory = directory
        self._store = store

    async def resume(self, run: SavedRun) -> None:
        """Resume the run until it ends or waits; on cancellation it is suspended. Raises if the process says why not.

        `WrongUse` if its agent cannot be built, else `RunError`.
        """
        process = await asyncio.create_subprocess_exec(
            *COMMAND,
            *("resume", run.id, "--suspend", "--json"),
            cwd=self._directory,
            env={**os.environ, VARIABLE: self._store},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C at our terminal is passed on by us
        )
        try:
            last = await _last_line(process)
            await process.wait()
        except asyncio.CancelledError:
            await _stop(process)
            raise
        if process.returncode not in (0, WAITING):
            why = safe_text(last)[:LONGEST] or f"its process ended with {process.returncode}"
            raise WrongUse(why) if process.returncode == WRONG_USE else RunError(why)

    async def flush(self) -> None:
        """Do nothing: whatever the process has written is in the store."""

    def close(self) -> None:
        """Do nothing: the process is over."""


async def _last_line(process: asyncio.subprocess.Process) -> str:
    """Return the last line of its stderr. Only the last `LARGEST` bytes are kept, however much it writes."""
    assert process.stderr is not None, "it was asked for"
    tail = b""
    while part := await process.stderr.read(LARGEST):
        tail = (tail + part)[-LARGEST:]
    return next((line for line in reversed(tail.decode(errors="replace").splitlines()) if line.strip()), "")


async def _stop(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGINT)
    try:
        await asyncio.wait_for(process.communicate(), GRACE)
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
