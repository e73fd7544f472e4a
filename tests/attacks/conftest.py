"""Fixtures for attacks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.attacks.kept import Place


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A store that outlives the processes which use it."""
    made = Place(tmp_path)
    yield made
    made.close()
