"""Count the work of a function, without a clock: so that a test of it means the same on a busy machine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")
_SLACK = 1.1
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


def grows_linearly(
    of_size: Callable[[int], T], work: Callable[[T], object], size: int, *, sizes: Sequence[int] = (1, 2, 4)
) -> None:
    """Check that twice the input takes no more than about twice the steps, and four times no more than four times."""
    given = [of_size(times * size) for times in sizes]
    work(of_size(size // 2))  # what is imported counts for none; what is remembered of a text must not, either
    counts = [steps(lambda text=text: work(text)) for text in given]
    for less, more in pairwise(counts):
        assert more <= less * 2 * _SLACK + _FIXED, counts
