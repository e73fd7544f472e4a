"""The table of docs/guides/nested.md is the matrix of tests: no cell without a test, no test without a cell.

What is bold there is played every day.
"""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path
from typing import Any

from tests.nested import test_matrix as module
from tests.nested.cells import ANSWERS, DAILY, LEVELS, MATRIX, STORES, UNCHANGED, UNCHANGED_DAILY, WAYS, name_of
from tests.pairwise import pairs_of

PAGE = Path(__file__).parents[2] / "docs" / "guides" / "nested.md"
CELL = re.compile(r"^\| (?P<levels>\d) \| (?P<way>[\w ]+) \| (?P<cells>.*) \|$", re.MULTILINE)
HEADER = re.compile(r"^\| levels \| way \| (?P<answers>.*) \|$", re.MULTILINE)
WORDS = {"sqlite": "SQLite", "postgres": "Postgres", "other_process": "other process"}


def table() -> str:
    """The table as the page has to show it."""
    lines = [f"| levels | way | {' | '.join(ANSWERS)} |", "|---|---" + "|---" * len(ANSWERS) + "|"]
    for levels, way in product(LEVELS, WAYS):
        cells = [", ".join(_shown(levels, way, answer, store) for store in STORES) for answer in ANSWERS]
        lines.append(f"| {levels} | {WORDS.get(way, way)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _shown(*cell: Any) -> str:
    return f"**{WORDS[cell[-1]]}**" if cell in DAILY else WORDS[cell[-1]]


def cells_on_page(*, daily: bool = False) -> set[tuple[int, str, str, str]]:
    """What the page says is tested, or tested every day."""
    page = PAGE.read_text("utf-8")
    header = HEADER.search(page)
    assert header is not None, "docs/guides/nested.md has no table of the matrix"
    names = {word: name for name, word in WORDS.items()}
    found: set[tuple[int, str, str, str]] = set()
    for row in CELL.finditer(page):
        for answer, cell in zip(header["answers"].split(" | "), row["cells"].split(" | "), strict=True):
            way = names.get(row["way"], row["way"])
            shown = [store for store in cell.split(", ") if store.startswith("**") or not daily]
            found |= {(int(row["levels"]), way, answer, names[store.strip("*")]) for store in shown}
    return found


def test_the_table_says_what_is_tested() -> None:
    assert cells_on_page() == set(MATRIX)
    assert cells_on_page(daily=True) == DAILY
    assert table() in PAGE.read_text("utf-8"), f"the table has to be:\n{table()}"


def test_every_cell_is_a_test_by_its_name() -> None:
    [mark] = [one for one in module.test_matrix.pytestmark if one.name == "parametrize"]
    names, cells = mark.args
    assert names == ("levels", "way", "answer", "store")
    assert {one.values: one.id for one in cells} == {cell: name_of(*cell) for cell in MATRIX}
    marks = {one.values: [mark.name for mark in one.marks] for one in cells}
    wanted = {cell: [] if cell in DAILY else ["nightly"] for cell in MATRIX}
    assert marks == wanted, "none is skipped, none may fail, and each is played at night at the latest"
    assert len(MATRIX) == len(set(MATRIX)) == 120


def test_every_pair_is_played_every_day() -> None:
    assert set().union(*map(pairs_of, DAILY)) == set().union(*map(pairs_of, MATRIX))


def test_every_choice_is_played_every_day_with_tools_that_stay_as_they_are() -> None:
    assert [set(axis) for axis in zip(*UNCHANGED_DAILY, strict=True)] == [set(LEVELS), set(WAYS), set(ANSWERS)]
    assert set(UNCHANGED_DAILY) < set(UNCHANGED)
