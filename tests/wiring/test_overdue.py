"""Discord is down and no rule has a timeout: the default five minutes count from the question."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import discord
import pytest
from pydantic_ai import Agent
from tests.discord.service import Service
from tests.discord.service.pointed import point_at
from tests.gate.agents import calls, returns

from signoff import Signoff
from signoff.channels import DiscordApprovals
from signoff.core.request import State
from signoff.testing import FakeClock, ScriptedModel

MINUTES = timedelta(minutes=1)


@pytest.fixture
def service() -> Iterator[Service]:
    made = Service().start()
    back = point_at(made.url)
    try:
        yield made
    finally:
        back()
        made.stop()


@asynccontextmanager
async def cut_off(service: Service, gate: Signoff, **options: Any) -> AsyncIterator[None]:
    """A bot that Discord has left."""
    async with discord.Client(intents=discord.Intents(guilds=True)) as bot:
        task = asyncio.create_task(bot.start(service.token))
        people = {"ana": service.person("ana").id}
        await service.connected()
        await bot.wait_until_ready()
        await service.down()
        try:
            async with DiscordApprovals(bot, signoff=gate, channel=service.channel.id, people=people, **options):
                yield
        finally:
            await bot.close()
            await asyncio.gather(task, return_exceptions=True)


def pay() -> str:
    return "paid"


def agent_of(gate: Signoff) -> Agent[None, str]:
    return Agent(ScriptedModel([calls(("pay", {})), {"say": "done"}]), tools=[pay], capabilities=[gate])


async def advanced(clock: FakeClock, by: timedelta) -> None:
    clock.advance(by)
    for _ in range(100):  # whatever that wakes gets its turn
        await asyncio.sleep(0)


async def asked(gate: Signoff, number: int = 1) -> None:
    while len(await gate.pending()) < number:
        await asyncio.sleep(0)


async def test_a_question_that_nobody_is_shown_ends_after_the_timeout(service: Service) -> None:
    clock = FakeClock()
    gate = Signoff([{"ask": "*"}], clock=clock)
    async with cut_off(service, gate):
        run = asyncio.ensure_future(agent_of(gate).run("go"))
        await asked(gate)
        await advanced(clock, 4.9 * MINUTES)
        [waits] = await gate.pending()
        assert waits.state is State.PENDING and not run.done()
        later = asyncio.ensure_future(agent_of(gate).run("go"))
        await asked(gate, 2)
        await advanced(clock, 0.2 * MINUTES)
        [(_, content)] = returns((await run).all_messages())
        assert (json.loads(content)["by"], json.loads(content)["reason"]) == ("timeout", "nobody answered in time")
        assert not later.done() and len(await gate.pending()) == 1, "the other has its own five minutes"
        await advanced(clock, 5 * MINUTES)
        assert json.loads(returns((await later).all_messages())[0][1])["by"] == "timeout"


@pytest.mark.parametrize(("rule", "timeout"), [({"ask": "*", "timeout": "1h"}, "default"), ({"ask": "*"}, None)])
async def test_a_rule_with_its_own_timeout_keeps_it_and_none_is_none(
    service: Service, rule: dict[str, Any], timeout: Any
) -> None:
    clock = FakeClock()
    gate = Signoff([rule], clock=clock)
    async with cut_off(service, gate, timeout=timeout):
        run = asyncio.ensure_future(agent_of(gate).run("go"))
        await asked(gate)
        await advanced(clock, 30 * MINUTES)
        [waits] = await gate.pending()
        assert waits.state is State.PENDING and not run.done()
        run.cancel()
        await asyncio.wait([run])
