"""Fixtures of the Discord tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.discord.flow import Flow, on_record, project
from tests.discord.house import House
from tests.discord.service import Service
from tests.discord.service.listener import Listener
from tests.discord.service.pointed import point_at
from tests.discord.service.running import running
from tests.discord.stories import DELEGATES, RULES, WORKERS


@pytest.fixture
def service() -> Iterator[Service]:
    """A stand-in of Discord with one guild, one text channel and one bot; discord.py of this process talks to it.

    Requests that no document describes fail the test.
    """
    made = Service().start()
    back = point_at(made.url)
    try:
        yield made
    finally:
        back()
        made.stop()
    assert made.errors == []


@pytest.fixture
async def client(service: Service) -> AsyncIterator[Listener]:
    """A plain discord.py client that is logged in to it and ready."""
    async with running(Listener(), service) as made:
        yield made


@pytest.fixture
def house(service: Service, tmp_path: Path) -> Iterator[House]:
    """A broker over a file, with a channel of the stand-in that is not running yet."""
    made = House(service, tmp_path)
    yield made
    made.close()


@pytest.fixture(scope="session")
def telling(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flow]:
    """The bot of all stories of this worker, and the stand-in that it talks to. No test breaks either."""
    with project(tmp_path_factory.mktemp("stories")) as made:
        made.write(WORKERS, RULES, **DELEGATES)
        asyncio.run(made.start())
        yield made
        made.stop()


@pytest.fixture
def flow(telling: Flow) -> Iterator[Flow]:
    """The project of the stories, with its bot; afterwards the record has to hold."""
    with on_record(telling):
        yield telling
