"""The table of docs/nested.md is the matrix of tests: no cell without a test, no test without a cell."""

from __future__ import annotations

import re
from pathlib import Path

from tests.nested import test_matrix as module
from tests.nested.cells import ANSWERS, LEVELS, MATRIX, STORES, WAYS, name_of

PAGE = Path(__file__).parents[2] / "docs" / "nested.md"
CELL = re.compile(r"^\| (?P<levels>\d) \| (?P<way>[\w ]+) \| (?P<cells>.*) \|$", re.MULTILINE)
HEADER = re.compile(r"^\| levels \| way \| (?P<answers>.*) \|$", re.MULTILINE)
WORDS = {"sqlite": "SQLite", "postgres": "Postgres", "other_process": "other process"}


def table() -> str:
    """The table as the page has to show it."""
    lines = [f"| levels | way | {' | '.join(ANSWERS)} |", "|---|---" + "|---" * len(ANSWERS) + "|"]
    stores = ", ".join(WORDS[store] for store in STORES)
    for levels in LEVELS:
        lines += [f"| {levels} | {WORDS.get(way, way)} | {' | '.join([stores] * len(ANSWERS))} |" for way in WAYS]
    return "\n".join(lines)


def cells_on_page() -> set[tuple[int, str, str, str]]:
    """What the page says is tested."""
    page = PAGE.read_text("utf-8")
    header = HEADER.search(page)
    assert header is not None, "docs/nested.md has no table of the matrix"
    names = {word: name for name, word in WORDS.items()}
    found: set[tuple[int, str, str, str]] = set()
    for row in CELL.finditer(page):
        for answer, cell in zip(header["answers"].split(" | "), row["cells"].split(" | "), strict=True):
            way = names.get(row["way"], row["way"])
            found |= {(int(row["levels"]), way, answer, names[store]) for store in cell.split(", ")}
    return found


def test_the_table_says_what_is_tested() -> None:
    assert cells_on_page() == set(MATRIX)
    assert table() in PAGE.read_text("utf-8"), f"the table has to be:\n{table()}"


def test_every_cell_is_a_test_by_its_name() -> None:
    [mark] = [one for one in module.test_matrix.pytestmark if one.name == "parametrize"]
    names, cells = mark.args
    assert names == ("levels", "way", "answer", "store")
    assert {one.values: one.id for one in cells} == {cell: name_of(*cell) for cell in MATRIX}
    assert not any(one.marks for one in cells), "none is skipped, none may fail"
    assert len(MATRIX) == len(set(MATRIX)) == 120
