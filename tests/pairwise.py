"""Some of the combinations of several choices, so that every pair of choices is in one of them.

Most faults need one or two choices to come together, so these few find nearly what all of them find. A test plays them
daily and the rest at night, with the same function and the same ids:

    DAILY = pairwise(LEVELS, WAYS, ANSWERS)

    @pytest.mark.parametrize(("levels", "way", "answer"), cases(product(LEVELS, WAYS, ANSWERS), DAILY))
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import combinations, product
from typing import Any

import pytest

Combination = tuple[Any, ...]


def pairs_of(combination: Combination) -> set[tuple[int, Any, int, Any]]:
    """Every pair of choices in a combination, each choice with its place."""
    return {(i, a, j, b) for (i, a), (j, b) in combinations(enumerate(combination), 2)}


def pairwise(*axes: Sequence[Any], fits: Callable[..., bool] = lambda *_: True) -> list[Combination]:
    """Combinations that hold every pair which some combination that `fits` holds; the same ones each time."""
    left = [one for one in product(*axes) if fits(*one)]
    missing = set().union(*map(pairs_of, left))
    chosen: list[Combination] = []
    while missing:
        best = max(left, key=lambda one: len(pairs_of(one) & missing))  # the first of several that are as good
        chosen.append(best)
        missing -= pairs_of(best)
    return chosen


def cases(
    every: Iterable[Combination], daily: Collection[Combination], name: Callable[..., str] | None = None
) -> list[Any]:
    """Parameters for `pytest.mark.parametrize`: all of them, and those that are not `daily` marked `nightly`."""
    return [
        pytest.param(*one, id=name(*one) if name else None, marks=[] if one in daily else [pytest.mark.nightly])
        for one in every
    ]
