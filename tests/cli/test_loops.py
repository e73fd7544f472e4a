"""Commands that wait end when they are interrupted, whenever that comes."""

from __future__ import annotations

import sys

import pytest
from tests import start

PROGRAM = """
import asyncio, os, signal, threading
from signoff.cli.loops import run

def interrupt():
    # Where the thread that sleeps does not notice it: as in the instant before it falls asleep.
    for _ in range(2_000):
        os.sched_yield()
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)
    still.wait()

still = threading.Event()

async def wait_for_ever():
    threading.Thread(target=interrupt, daemon=True).start()
    await asyncio.Event().wait()

try:
    run(wait_for_ever())
except KeyboardInterrupt:
    print("interrupted", signal.set_wakeup_fd(-1))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are sent to a thread")
def test_an_interrupt_that_nobody_was_woken_by_is_noticed() -> None:
    done = start.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=start.PATIENCE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted -1\n", "")
