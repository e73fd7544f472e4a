"""Fixtures for tests of the server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.server.api_desk import ApiDesk


@pytest.fixture
async def api_desk(tmp_path: Path) -> AsyncIterator[ApiDesk]:
    desk = ApiDesk(tmp_path)
    yield desk
    await desk.close()
