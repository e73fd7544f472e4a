"""The start of a program that runs agents: it makes much, and nearly all of it stays."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager

_frozen = False
"""Whether this process did so before. Python could tell by counting every object that it has frozen."""


@contextmanager
def uncollected() -> Generator[None]:
    """Within, nobody looks for garbage; afterwards, not in what was made by then.

    Importing PydanticAI makes so many objects that all of them are looked through several times, in vain. Only the
    first time: what was left over by then would never be collected.
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
