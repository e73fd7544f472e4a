"""Runs a discord.py client against the service for the length of a test."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

import discord
from tests.discord.service.people import PATIENCE
from tests.discord.service.server import Service

C = TypeVar("C", bound=discord.Client)


def plain_intents() -> discord.Intents:
    """Guilds and their messages; none that is privileged."""
    return discord.Intents(guilds=True, guild_messages=True)


@asynccontextmanager
async def running(client: C, service: Service, token: str | None = None) -> AsyncGenerator[C, None]:
    """The client, logged in and ready; closed afterwards. What its task fails with is raised."""
    task = asyncio.create_task(client.start(token or service.token))
    ready = asyncio.create_task(_ready(client, task))
    try:
        done, _ = await asyncio.wait({task, ready}, timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        if task in done:
            await task
        assert ready in done, "the client was not ready in time"
        yield client
    finally:
        ready.cancel()
        with suppress(asyncio.CancelledError):
            await ready
        await client.close()
        # The task may be at home in a login or an attempt to connect, and closing alone does not end those.
        task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.wait({task})


async def _ready(client: discord.Client, task: asyncio.Task[None]) -> None:
    """`wait_until_ready` may only be called once the client has begun to log in."""
    began = asyncio.Event()
    before = client.setup_hook

    async def hook() -> None:
        began.set()
        await before()

    client.setup_hook = hook  # type: ignore[method-assign]
    await began.wait()
    await client.wait_until_ready()
