"""Hear of changes of a store on the event loop that waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

Watch = Callable[[Callable[[], None]], Callable[[], None]]
"""Calls a function, from any thread, after changes, until the function that it returns is called: `Store.watch`."""


@contextmanager
def told_of_changes(watch: Watch, news: Callable[[], None]) -> Generator[None]:
    """Call `news` on this event loop soon after any process changed something."""
    loop = asyncio.get_running_loop()

    def tick() -> None:
        with suppress(RuntimeError):  # the loop was closed in the same instant
            loop.call_soon_threadsafe(news)

    stop = watch(tick)
    try:
        yield
    finally:
        stop()


@contextmanager
def changes(watch: Watch) -> Generator[asyncio.Event]:
    """An event that is set soon after any process changed something. Clear it before you look."""
    changed = asyncio.Event()
    with told_of_changes(watch, changed.set):
        yield changed
