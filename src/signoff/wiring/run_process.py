"""A run that goes on in a process of its own: where it was begun, which is not where this process stands."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress

from signoff.core.redact import redact_text
from signoff.core.visible_text import visible
from signoff.store.chosen_store import VARIABLE

WAITING = 3
"""The exit code of a command whose run waits for people."""
COMMAND = (sys.executable, "-c", "from signoff.cli.main import main; main()")
"""How this very program is started again."""
GRACE = 5.0
"""Seconds that it has to put its run down."""
LONGEST = 300
LARGEST = 16_384
"""Bytes of what it says that are looked at."""


async def resumed_apart(run_id: str, directory: str, store: str) -> str:
    """Go on with a run as far as it can; gives why it could not. Cancelled, the run is put down.

    It stands in the run's directory, with modules of its own. The address of the store is not among its arguments: it
    may hold a password, and everybody can read those.
    """
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *("resume", run_id, "--suspend", "--json"),
        cwd=directory,
        env={**os.environ, VARIABLE: store},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C at our terminal is ours to pass on
    )
    try:
        last = await _last_line(process)
        await process.wait()
    except asyncio.CancelledError:
        await _stop(process)
        raise
    if process.returncode in (0, WAITING):
        return ""
    return visible(redact_text(last))[:LONGEST] or f"its process ended with {process.returncode}"


async def _last_line(process: asyncio.subprocess.Process) -> str:
    """What it said last; of all the rest nothing is kept, however much it is."""
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
