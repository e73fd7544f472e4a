"""Work that others ask for: done in a thread of its own if it is large, so that nobody else waits for it.

One such piece of work is done at a time: several would only slow each other and everything else down. What is very
large has a thread of its own, so that it holds up nothing but its like. Whatever took long is remembered with whom it
was for, so that a log can say why a server stood still.
"""

from __future__ import annotations

import gc
import sys
import time
from collections import deque
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

T = TypeVar("T")
LARGE = 8_192
"""Characters and parts of a value from which on work on it is large."""
VERY_LARGE = 131_072
"""As `LARGE`: from here on, work waits only for other work as large as this, and nothing smaller waits for it."""
SLOW = 0.1
"""Seconds from which on a piece of work is remembered."""


class SlowWork(NamedTuple):
    """A piece of work that took long."""

    what: str
    ended: float
    """By `time.monotonic`."""
    seconds: float


TURN = 0.0005
"""Seconds after which a thread lets another one run that waits: a short request takes many turns."""


def share_the_process() -> None:
    """Prepare a process that serves many clients, once it has loaded what it needs. It must have no other purpose.

    What is loaded by then is left out when garbage is looked for: that would hold up everybody for as long as a large
    message does, whenever one leaves many objects behind.
    """
    sys.setswitchinterval(TURN)
    gc.collect()
    gc.freeze()


_slow: deque[SlowWork] = deque(maxlen=16)


async def done(what: str, about: object, work: Callable[[], T]) -> T:
    """Do work about a value, in a thread if the value is large. `what` says for whom: `judging a call of …`."""
    if not is_large(about):
        return _timed(what, work)
    return await in_thread(what, work, about=about)


async def in_thread(what: str, work: Callable[[], T], *, about: object = None) -> T:
    """Do work in a thread that may be large although no value says so, such as a check against a schema."""
    import asyncio
    from contextvars import copy_context

    within = copy_context()
    thread = _thread(is_large(about, VERY_LARGE))
    try:
        done = asyncio.get_running_loop().run_in_executor(thread, lambda: within.run(_timed, what, work))
    except NotImplementedError:  # a loop without threads, as in a workflow of Temporal
        return _timed(what, work)
    return await done


def slowest(since: float) -> SlowWork | None:
    """The longest piece of work that ended after a moment (`time.monotonic`), if any took long."""
    return max((one for one in _slow if one.ended >= since), key=lambda one: one.seconds, default=None)


def is_large(value: object, from_here: int = LARGE) -> bool:
    """Whether a value has many parts or characters. It looks at no more of them than it must."""
    left, parts = from_here, [value]
    while parts:
        part = parts.pop()
        left -= len(part) if isinstance(part, str | bytes) else 1
        if isinstance(part, Mapping):
            inner = cast("Mapping[object, object]", part)
            left -= len(inner)
            if left > 0:
                parts += [*inner.keys(), *inner.values()]
        elif isinstance(part, list | tuple):
            items = cast("list[object]", part)
            left -= len(items)
            if left > 0:
                parts += items
        if left <= 0:
            return True
    return False


def _timed(what: str, work: Callable[[], T]) -> T:
    began = time.monotonic()
    try:
        return work()
    finally:
        ended = time.monotonic()
        if ended - began >= SLOW:
            _slow.append(SlowWork(what, ended, ended - began))


@cache
def _thread(very_large: bool) -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(1, f"signoff-{'very-' if very_large else ''}large-work")
