"""A real server on loopback, and a client that reads its events as a browser does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import httpx
import uvicorn
from starlette.types import ASGIApp

from signoff.testing.office import soon

PATIENCE = 120.0
"""Seconds in which whatever a test waits for has to happen."""


async def until(condition: Callable[[], bool]) -> None:
    """Wait until something is so."""

    async def holds() -> bool:
        return condition()

    await soon(holds, lambda: "it never came to that", patience=PATIENCE)


@asynccontextmanager
async def serving(app: ASGIApp) -> AsyncIterator[str]:
    """The address of a server, which ends with the block, whoever is still connected."""
    config = uvicorn.Config(app, port=0, log_level="critical", lifespan="off", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    task = asyncio.create_task(server.serve())
    try:
        await until(lambda: server.started or task.done())
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        await task


class Frame(NamedTuple):
    """One server-sent event."""

    id: str
    event: str
    data: Any


class Reader:
    """The events of one connection."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self.comments = 0
        self.last = ""
        """The id that a browser would come back with."""
        self._lines = response.aiter_lines()

    async def next(self) -> Frame | None:
        """The next event; None where the connection ends."""
        fields: dict[str, str] = {}
        async with asyncio.timeout(PATIENCE):
            async for line in self._lines:
                if line.startswith(":"):
                    self.comments += 1
                elif line:
                    name, _, value = line.partition(": ")
                    fields[name] = value
                elif "data" in fields:
                    self.last = fields.get("id", self.last)
                    return Frame(fields.get("id", ""), fields.get("event", "message"), json.loads(fields["data"]))
                else:
                    fields = {}
        return None

    async def some(self, number: int) -> list[Frame]:
        """So many events of the record."""
        found: list[Frame] = []
        while len(found) < number:
            frame = await self.next()
            assert frame is not None, f"the connection ended after {found}"
            if frame.event == "message":
                found.append(frame)
        return found


@asynccontextmanager
async def reading(url: str, *, last: str = "", who: str = "ben", **query: Any) -> AsyncIterator[Reader]:
    """A connection that reads events, once it has begun."""
    headers = {"x-who": who, **({"last-event-id": last} if last else {})}
    async with httpx.AsyncClient(trust_env=False, timeout=None, verify=False) as client:
        async with client.stream("GET", f"{url}/api/v1/events", headers=headers, params=query) as response:
            assert response.status_code == 200, await response.aread()
            yield Reader(response)
