"""Which threads are used again: those that were made for a run, and none that somebody gave its name."""

from __future__ import annotations

import pytest
from tests.discord.house import House
from tests.discord.service import Service

from signoff.ports import Heard


async def begin(_: Heard) -> str:
    return ""


@pytest.mark.parametrize("covers_up", [False, True])
async def test_a_thread_that_somebody_named_like_another_is_not_used_for_that(
    house: House, service: Service, covers_up: bool
) -> None:
    async with house.running(house.channel(begin=begin, workers=("triage",))):
        said = await house.dan.say(service.channel, f"<@{service.bot.id}> triage · talk")
        await service.until(lambda: any(one.name == "triage · talk" for one in service.threads()))
        [theirs] = service.threads()
        if covers_up:  # the thread stays, and so does Discord's own mark in it
            service.state.post(theirs, said.author, {"content": ""}, kind=21)
            await house.dan.delete(said)
        _, message = await house.shown(talk="talk")
        assert message.place is not theirs and message.place.name == "triage · talk"
        _, next_one = await house.shown(talk="talk")
        assert next_one.place is message.place
