"""Fixtures for tests of what is assembled."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.crash.fork import ForkServer
from tests.wiring.town import Town


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    """Forks processes in which everything is imported."""
    with ForkServer.shared() as server:
        yield server


@pytest.fixture
def town(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Town:
    """A project with a worker that can be talked to; the test sits in its directory."""
    monkeypatch.chdir(tmp_path)
    return Town(tmp_path).write()
