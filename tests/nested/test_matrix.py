"""Nested approvals, every cell: levels, the way it is answered, the answer, and the store.

Every day those cells that together hold each pair of these, at night all of them.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.crash.fork import ForkServer
from tests.nested import ways
from tests.nested.cells import DAILY, MATRIX, UNCHANGED, UNCHANGED_DAILY, Cell, name_of
from tests.nested.checks import check_cell
from tests.pairwise import cases


def play(cell: Cell, request: pytest.FixtureRequest) -> Any:
    """What the outermost agent answers."""
    if cell.way in ("inline", "suspended"):
        return asyncio.run(getattr(ways, cell.way)(cell))
    server: ForkServer = request.getfixturevalue("fork_server")
    return server.call(f"tests.nested.ways:{cell.way}", **cell.as_json())


@pytest.mark.parametrize(("levels", "way", "answer", "store"), cases(MATRIX, DAILY, name_of))
def test_matrix(
    levels: int, way: str, answer: str, store: str, url: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    cell = Cell(levels, way, answer, url, str(tmp_path))
    said = play(cell, request)
    asyncio.run(check_cell(cell, said))


@pytest.mark.parametrize(("levels", "way", "answer"), cases(UNCHANGED, UNCHANGED_DAILY, "{}-levels-{}-{}".format))
def test_tools_that_stay_as_they_are(
    levels: int, way: str, answer: str, url: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    cell = Cell(levels, way, answer, url, str(tmp_path), unchanged=True)
    said = play(cell, request)
    asyncio.run(check_cell(cell, said))
