"""Count the work of a function, without a clock: so that a test of it means the same on a busy machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")
_SLACK = 1.35
"""How much more than twice the work twice the input may take: caches fill, lists grow."""
_FIXED = 3_000
"""Steps that do not matter: what is done once."""


def steps(work: Callable[[], object]) -> int:
    """How many lines of Python a function runs, and functions in C it calls."""
    count = 0

    def line(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal count
        count += 1
        return line

    def call(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal count
        count += 1

    before, profiled = sys.gettrace(), sys.getprofile()
    sys.settrace(line)
    sys.setprofile(call)
    try:
        work()
    finally:
        sys.settrace(before)
        sys.setprofile(profiled)
    return count


def grows_linearly(of_size: Callable[[int], T], work: Callable[[T], object], size: int) -> None:
    """Check that twice the input takes no more than about twice the steps, and four times no more than four times."""
    given = [of_size(times * size) for times in (1, 2, 4)]
    work(given[0])  # what is imported and cached counts for none
    one, two, four = (steps(lambda text=text: work(text)) for text in given)
    assert two <= one * 2 * _SLACK + _FIXED, (one, two, four)
    assert four <= two * 2 * _SLACK + _FIXED, (one, two, four)
