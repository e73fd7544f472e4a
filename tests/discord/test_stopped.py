"""A channel that was stopped, or never came to be, hears nothing and leaves nothing in a bot."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import discord
import pytest
from tests.discord.house import House
from tests.discord.service import Service
from tests.discord.service.running import running

from signoff.channels.discord.channel import DiscordChannel
from signoff.core.request import State
from signoff.errors import WrongUse


def bot() -> discord.Client:
    return discord.Client(intents=discord.Intents(guilds=True, guild_messages=True))


def around(house: House, client: discord.Client) -> DiscordChannel:
    return DiscordChannel(client, channel=str(house.service.channel.id), people=house.accounts)


def _named(name: str, told: Callable[[Any], Awaitable[None]]) -> Any:
    async def handler(event: Any) -> None:
        await told(event)

    handler.__name__ = name
    return handler


async def test_a_stopped_channel_takes_no_answer(house: House, service: Service) -> None:
    async with house.running():
        request, message = await house.shown()
    client = bot()
    heard: asyncio.Queue[discord.Interaction] = asyncio.Queue()
    client.event(_named("on_interaction", heard.put))
    async with running(client, service):
        channel = around(house, client)
        await channel.start(house.inbox())
        await channel.stop()
        assert not any(client._listeners.values())
        ignored = await house.ben.press(message, "Deny")
        await heard.get()
        channel = around(house, client)
        await channel.start(house.inbox())
        await house.ana.press(message, "Approve")
        await house.becomes(request, State.APPROVED)
        await channel.stop()
        assert ignored.replies == []


async def test_a_start_that_failed_leaves_nothing_behind(house: House, service: Service) -> None:
    client = bot()
    async with running(client, service):
        await service.deny(service.channel, "embed_links")
        for _ in range(3):
            with pytest.raises(WrongUse, match="Embed Links"):
                await _refused(house, client)
        assert not any(client._listeners.values())


async def _refused(house: House, client: discord.Client) -> None:
    while True:  # until the client has heard of it
        channel = around(house, client)
        await channel.start(house.inbox())
        await channel.stop()
