"""What is played daily instead of every combination holds every pair of choices."""

from __future__ import annotations

from itertools import combinations, product

import pytest
from tests.pairwise import cases, pairs_of, pairwise

AXES = (
    [(2, 3, 4), ("inline", "suspended", "restart", "other process"), ("yes", "no", "late"), ("sqlite", "postgres")],
    [(1, 2), (1, 2), (1, 2)],
    [("only",), (1, 2, 3)],
)


def pairs_by_hand(axes: list[tuple[object, ...]]) -> set[tuple[int, object, int, object]]:
    return {(i, a, j, b) for i, j in combinations(range(len(axes)), 2) for a in axes[i] for b in axes[j]}


@pytest.mark.parametrize("axes", AXES, ids=len)
def test_every_pair_is_in_one_of_them(axes: list[tuple[object, ...]]) -> None:
    chosen = pairwise(*axes)
    assert set().union(*map(pairs_of, chosen)) == pairs_by_hand(axes)
    assert set(chosen) <= set(product(*axes))
    assert len(chosen) == len(set(chosen))
    assert chosen == pairwise(*axes), "the same each time"


def test_they_are_few() -> None:
    axes = AXES[0]
    assert len(list(product(*axes))) == 72
    assert len(pairwise(*axes)) <= 14  # 12 at the least: four ways, each with three answers


def test_what_does_not_fit_is_left_out_and_every_pair_that_fits_is_there() -> None:
    def fits(levels: int, way: str) -> bool:
        return levels == 3 or way == "inline"

    assert set(pairwise((2, 3), ("inline", "restart"), fits=fits)) == {(2, "inline"), (3, "inline"), (3, "restart")}


def test_the_rest_is_played_at_night() -> None:
    first, second = cases([(1, "a"), (2, "b")], {(1, "a")}, name=lambda number, letter: f"{number}{letter}")
    assert (first.values, first.id, first.marks) == ((1, "a"), "1a", [])
    assert (second.values, second.id) == ((2, "b"), "2b")
    assert [mark.name for mark in second.marks] == ["nightly"]
