"""H4: in a bot of one's own, over the real discord.py, with a clock that is turned by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import discord
import pytest
from pydantic_ai import Agent
from tests.discord.service import Message, Service
from tests.discord.service.pointed import point_at

from signoff import Signoff
from signoff.channels import DiscordApprovals
from signoff.testing import FakeClock, ScriptedModel

FIVE, INSTANT = timedelta(minutes=5), timedelta(seconds=1)
TURNS: list[dict[str, Any]] = [
    {"calls": [{"tool": name, "args": {}} for name in ("pay", "publish")]},
    {"say": "{{last}}"},
]


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service().start()
    back = point_at(made.url)
    try:
        yield made
    finally:
        back()
        made.stop()
    assert made.errors == []


@asynccontextmanager
async def connected(service: Service, gate: Signoff) -> AsyncGenerator[None]:
    """A bot that does nothing but ask."""
    people = {"ana": service.person("ana").id}
    async with discord.Client(intents=discord.Intents(guilds=True, guild_messages=True)) as bot:
        task = asyncio.create_task(bot.start(service.token))
        await service.connected()
        async with DiscordApprovals(bot, signoff=gate, channel=service.channel.id, people=people):
            yield
        await bot.close()
        await asyncio.gather(task, return_exceptions=True)


def asks(tool: str) -> Callable[[Message], bool]:
    return lambda one: f"May `{tool}` run?" in one.text and bool(one.buttons)


@pytest.mark.mission("H4")
async def test_h4_five_minutes_or_what_the_rule_says_then_each_is_rejected_and_says_so(
    service: Service, tmp_path: Path
) -> None:
    clock, ran = FakeClock(), list[str]()
    rules: list[dict[str, Any]] = [{"ask": "pay"}, {"ask": "publish", "timeout": "2h"}]
    gate = Signoff(rules, store=f"sqlite:{tmp_path / 's.db'}", clock=clock)
    agent = Agent(ScriptedModel(TURNS), name="clerk", capabilities=[gate])

    @agent.tool_plain
    def pay() -> None:
        ran.append("pay")

    @agent.tool_plain
    def publish() -> None:
        ran.append("publish")

    async with connected(service, gate):
        run = asyncio.create_task(agent.run("Go on"))
        short, long = await service.message(asks("pay")), await service.message(asks("publish"))
        assert f"<t:{int((clock.now() + FIVE).timestamp())}:R>" in short.text
        approve = short.child("Approve")
        assert approve is not None
        clock.advance(FIVE - INSTANT)
        await (await service.person("ana").press(short, "Deny with reason…")).modal()  # it is open: a form comes
        clock.advance(INSTANT)
        ended = await service.message(lambda one: one.id == short.id and not one.buttons)
        assert "nobody answered" in ended.text and "Timed out" in ended.text
        late = await service.person("ana").forge(short.place, approve["custom_id"], short)
        assert (await late.reply()).text.startswith("Too late:")
        await (await service.person("ana").press(long, "Deny with reason…")).modal()
        assert not run.done(), "the other has a time of its own"
        clock.advance(timedelta(hours=2))
        told = (await run).output
        await service.message(lambda one: one.id == long.id and "Timed out" in one.text)
    assert "nobody answered in time" in told and ran == []
