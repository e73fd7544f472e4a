"""Fixtures of the proofs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.proofs.outside import Project
from tests.stores import closed_in_the_end


@pytest.fixture(autouse=True)
def programs_end() -> Iterator[None]:
    with closed_in_the_end():
        yield


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)
