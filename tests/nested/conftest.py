"""Fixtures for nested approvals."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.crash.fork import ForkServer
from tests.nested.kit import World


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    """Forks processes in which everything is imported."""
    with ForkServer.shared() as server:
        yield server


@pytest.fixture
def store() -> str:
    """Which store; tests that try both say so."""
    return "sqlite"


@pytest.fixture
def url(request: pytest.FixtureRequest, store: str, tmp_path: Path) -> str:
    """A store that nobody has used yet."""
    return f"sqlite:{tmp_path / 'signoff.db'}" if store == "sqlite" else request.getfixturevalue("postgres_store")


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.close()
