"""Every store, behind one fixture."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.contracts.databases import STORES, Database
from tests.ready import ready

from signoff.ports import Store
from signoff.store.memory_store import MemoryStore


@pytest.fixture(params=STORES)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    opened = Database(request.param, _maker(request, tmp_path))
    yield opened
    opened.close()


@pytest.fixture
def store(database: Database) -> Store:
    return database.open()


def _maker(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Store]:
    if request.param == "memory":
        store = MemoryStore(record=True)
        return lambda: store
    if request.param == "sqlite":
        from signoff.store.sqlite import SqliteStore

        directory = tmp_path / "with spaces, ünïcode & 100% of ?#"
        directory.mkdir()
        return lambda: SqliteStore(ready(directory / "signoff.db"))
    url = request.getfixturevalue("postgres_store")
    from signoff.store.postgres import PostgresStore

    return lambda: PostgresStore(url, listen=request.param == "postgres")
