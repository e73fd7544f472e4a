"""Callbacks that do not keep the object alive whose method they call."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakMethod


def register_weakly(
    register: Callable[[Callable[[], None]], Callable[[], None] | None], method: Callable[[], None]
) -> Callable[[], None] | None:
    """Register a bound method as a callback, until its object is gone. Returns what `register` returns: how to stop.

    It is not stopped by the garbage collector, which may run while the lock is held that stopping needs, but by the
    first call that finds the object gone.
    """
    found = WeakMethod(method)

    def call() -> None:
        if (alive := found()) is not None:
            alive()
        elif stop is not None:  # a store of others may not say how to stop
            stop()

    stop = register(call)
    return stop
