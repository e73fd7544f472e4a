"""A small discord.py client for tests: it keeps what it hears, and what it asks is easily said."""

from __future__ import annotations

import asyncio
from typing import Any

import discord
import pytest
from tests.discord.service.running import plain_intents
from tests.discord.service.server import Service
from tests.discord.service.world import Message


class Listener(discord.Client):
    """A client that keeps what it hears, and answers interactions as the test says."""

    def __init__(self, intents: discord.Intents | None = None) -> None:
        super().__init__(intents=intents or plain_intents())
        self.heard: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
        self.answer: Any = None

    async def on_message(self, message: discord.Message) -> None:
        self.heard.put_nowait(("message", message))

    async def on_raw_message_delete(self, event: discord.RawMessageDeleteEvent) -> None:
        self.heard.put_nowait(("deleted", event.message_id))

    async def on_raw_message_edit(self, event: discord.RawMessageUpdateEvent) -> None:
        self.heard.put_nowait(("edited", event.message_id))

    async def on_raw_thread_delete(self, event: discord.RawThreadDeleteEvent) -> None:
        self.heard.put_nowait(("thread deleted", event.thread_id))

    async def on_interaction(self, interaction: discord.Interaction) -> None:
        self.heard.put_nowait(("interaction", interaction))
        if self.answer is not None:
            try:
                await self.answer(interaction)
            except Exception as error:
                self.heard.put_nowait(("error", error))

    async def hear(self, kind: str) -> Any:
        """The next thing of this kind; others are passed over."""
        async with asyncio.timeout(20):
            while True:
                name, what = await self.heard.get()
                if name == kind:
                    return what


def room(client: discord.Client, service: Service) -> discord.TextChannel:
    found = client.get_channel(service.channel.id)
    assert isinstance(found, discord.TextChannel)
    return found


def view(*items: discord.ui.Item[Any]) -> discord.ui.View:
    made = discord.ui.View(timeout=None)
    for item in items:
        made.add_item(item)
    return made


async def asked(client: discord.Client, service: Service, *items: discord.ui.Item[Any]) -> Message:
    """A message of the bot with these components."""
    items = items or (discord.ui.Button(label="Approve", custom_id="yes"),)
    sent = await room(client, service).send("May I?", view=view(*items))
    return service.find(sent.id)


async def refused(work: Any, code: int) -> None:
    with pytest.raises(discord.HTTPException) as caught:
        await work
    assert caught.value.code == code
