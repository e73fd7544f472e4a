"""`Background`: what led to a call of an agent in another program, as that program tells it. It affects no verdict."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta

from signoff.broker.wall_clock import pause_for
from signoff.core.request_context import LONGEST_PROMPT, LONGEST_WORDS, shortened
from signoff.ports import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class Background:
    """The prompt, and what the model said. Nothing checks it, and it is not safe to show yet."""

    prompt: str = ""
    """The prompt of the agent."""
    words: str = ""
    """What its model said in the turn that made the call."""
    is_late: bool = False
    """Whether the program has not written down the call yet, so that there may soon be more."""


NO_BACKGROUND = Background()
ReadsBackground = Callable[[], Background]
"""Reads it when people are asked: calls that policy decides do not need it. It may block."""

_PAUSES = tuple(timedelta(milliseconds=one) for one in (100, 300, 600))
"""Pauses before it is read again."""


def no_background() -> Background:
    """Tell nothing."""
    return NO_BACKGROUND


async def read_background(read: ReadsBackground, clock: Clock) -> Background:
    """Read it in a thread; again within a second if the program is late.

    Whatever is wrong with what a program wrote down, people are asked all the same.
    """
    import asyncio

    found = NO_BACKGROUND
    with suppress(Exception):
        found = await asyncio.to_thread(read)
        for pause in _PAUSES:
            if not found.is_late:
                break
            await pause_for(clock, pause)
            found = await asyncio.to_thread(read)
    return replace(found, prompt=shortened(found.prompt, LONGEST_PROMPT), words=shortened(found.words, LONGEST_WORDS))
