"""Fixtures of the Discord tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.discord.house import House
from tests.discord.service import Service
from tests.discord.service.listener import Listener
from tests.discord.service.pointed import point_at
from tests.discord.service.running import running


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
