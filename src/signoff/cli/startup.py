"""Speed up the start of a program that runs agents, by pausing the garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

_frozen = False
"""Whether this process did so before. Asking Python (`gc.get_freeze_count`) would count every frozen object."""


@contextmanager
def uncollected() -> Generator[None]:
    """Pause garbage collection, and exempt (`gc.freeze`) the objects made by then from later collections.

    Importing PydanticAI makes so many objects that the collector would scan all of them several times, in vain. Only
    the first time in a process: garbage left by then would never be collected.
    """
    global _frozen
    if _frozen:
        yield
        return
    _frozen = True
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if collects:
            gc.enable()
