"""Fixtures for the crash and race harnesses."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.crash.fork import ForkServer
from tests.crash.table import Place


@pytest.fixture(scope="session")
def fork_server() -> Iterator[ForkServer]:
    """Forks the processes of the harnesses."""
    with ForkServer.shared() as server:
        yield server


@pytest.fixture
def tmp_path() -> Iterator[Path]:
    """In memory, where a system has a directory for that: processes are killed here, never the machine."""
    memory = "/dev/shm"
    with TemporaryDirectory(prefix="signoff-", dir=memory if os.access(memory, os.W_OK) else None) as directory:
        yield Path(directory)


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def url(request: pytest.FixtureRequest, database: str, tmp_path: Path) -> str:
    """A store that nobody has used yet."""
    return f"sqlite:{tmp_path / 'signoff.db'}" if database == "sqlite" else request.getfixturevalue("postgres_store")


@pytest.fixture
def place(request: pytest.FixtureRequest, fork_server: ForkServer, database: str, tmp_path: Path) -> Place:
    """Where cases are played."""
    postgres = request.getfixturevalue("postgres_store") if database == "postgres" else ""
    return Place(fork_server, tmp_path, postgres)
