"""Resume a run in a subprocess, in the directory where it was started."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress

from signoff.core.exit_codes import WAITING
from signoff.core.safe_text import safe_text
from signoff.store.chosen_store import VARIABLE

COMMAND = (sys.executable, "-P", "-c", "from signoff.cli.main import main; main()")
"""The command that starts this program again. `-P`: nothing is imported from the working directory by itself."""
GRACE = 5.0
"""Timeout in seconds for the process to suspend its run before it is killed."""
LONGEST = 300
LARGEST = 16_384
"""How many bytes of the end of its stderr are kept."""


async def resumed_apart(run_id: str, directory: str, store: str) -> str:
    """Resume a run until it ends or waits. Returns why it could not; empty if it could.

    On cancellation the run is suspended. The process runs in the run's directory, with its own modules. The store's
    address is passed in the environment, not in the arguments: it may hold a password, and everybody can read
    arguments.
    """
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *("resume", run_id, "--suspend", "--json"),
        cwd=directory,
        env={**os.environ, VARIABLE: store},
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
    if process.returncode in (0, WAITING):
        return ""
    return safe_text(last)[:LONGEST] or f"its process ended with {process.returncode}"


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
