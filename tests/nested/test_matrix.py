"""Nested approvals, every cell: levels, the way it is answered, the answer, and the store."""

from __future__ import annotations

import asyncio
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tests.crash.fork import ForkServer
from tests.nested import ways
from tests.nested.cells import ANSWERS, LEVELS, MATRIX, WAYS, Cell, name_of
from tests.nested.checks import check_cell


def play(cell: Cell, request: pytest.FixtureRequest) -> Any:
    """What the outermost agent answers."""
    if cell.way in ("inline", "suspended"):
        return asyncio.run(getattr(ways, cell.way)(cell))
    server: ForkServer = request.getfixturevalue("fork_server")
    return server.call(f"tests.nested.ways:{cell.way}", **cell.as_json())


@pytest.mark.parametrize(
    ("levels", "way", "answer", "store"), [pytest.param(*cell, id=name_of(*cell)) for cell in MATRIX]
)
def test_matrix(
    levels: int, way: str, answer: str, store: str, url: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    cell = Cell(levels, way, answer, url, str(tmp_path))
    said = play(cell, request)
    asyncio.run(check_cell(cell, said))


@pytest.mark.parametrize(
    ("levels", "way", "answer"),
    [
        pytest.param(levels, way, answer, id=f"{levels}-levels-{way}-{answer}")
        for levels, way, answer in product(LEVELS, WAYS, ANSWERS)
        if levels == 3 or way in ("inline", "suspended")
    ],
)
def test_tools_that_stay_as_they_are(
    levels: int, way: str, answer: str, url: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    cell = Cell(levels, way, answer, url, str(tmp_path), unchanged=True)
    said = play(cell, request)
    asyncio.run(check_cell(cell, said))
