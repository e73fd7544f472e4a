"""Several programs with one token: every one hears of every press, and only the one that asked says anything."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.discord.house import House, plainly, told
from tests.discord.service import Answered, Service

from signoff.channels.discord import presses
from signoff.channels.discord.bot import discord_channel
from signoff.core.request import State
from signoff.delivery import Reconciler, Route


@pytest.fixture
async def other(service: Service, tmp_path: Path) -> AsyncIterator[House]:
    """Another project, with a store of its own."""
    (tmp_path / "other").mkdir()
    made = House(service, tmp_path / "other")
    yield made
    made.close()


def said(answered: Answered) -> list[str]:
    return [plainly(reply.text) for reply in answered.replies if reply.is_visible and reply.kind != "modal"]


def test_whoever_did_not_ask_waits_longer_than_a_form_takes() -> None:
    assert presses._FORM_WITHIN < presses._SOMEBODY_ELSE < 3.0


async def test_a_program_that_did_not_ask_says_nothing_about_what_another_does(house: House, other: House) -> None:
    async with house.running(), other.running():
        first, one = await house.shown()
        second, two = await other.shown(talk="another")
        opened = await house.ana.press(one, "Deny with reason…")
        assert (await opened.reply()).kind == "modal"
        approved = await house.ana.press(one, "Approve")
        await house.becomes(first, State.APPROVED)
        denied = await house.ana.press(two, "Deny")
        await other.becomes(second, State.DENIED)
        # Whoever waits to say something has said it once a press that is nobody's was answered.
        nobodys = await house.ana.forge(one.place, f"signoff:1:approve:nosuchone:{'0' * 12}", one)
        assert "has no request" in await told(nobodys)
    assert [said(opened), said(approved), said(denied)] == [[], [], []]
    assert len(said(nobodys)) == 1


async def test_what_is_nobodys_is_answered_in_time_by_when_it_was_pressed(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be heard late, and the answer takes its way back: Discord counts from the press."""
    monkeypatch.setattr(presses, "_SOMEBODY_ELSE", 1000.0)
    monkeypatch.setattr(presses, "_MOST_LATE", 1000.0, raising=False)
    async with house.running():
        _, message = await house.shown()
        gone = f"signoff:1:approve:nosuchone:{'0' * 12}"
        assert "has no request" in await told(await house.ana.forge(message.place, gone, message, late=1000.0))


async def test_a_second_channel_of_a_bot_leaves_the_answer_to_whoever_asked(house: House, service: Service) -> None:
    night = discord_channel(
        service.token, channel=str(service._new_channel("night").id), people=house.accounts, name="night"
    )
    post = Reconciler(house.broker, [Route(house.channel()), Route(night)], inbox=house.inbox)
    running = asyncio.create_task(post.run())
    try:
        await service.connected(2)
        request, message = await house.shown()
        pressed = await house.ana.press(message, "Approve")
        await house.becomes(request, State.APPROVED)
        nobodys = await house.ana.forge(message.place, f"signoff:1:approve:nosuchone:{'0' * 12}", message)
        await told(nobodys)
        assert said(pressed) == [] and len(said(nobodys)) == 1
    finally:
        running.cancel()
        await asyncio.wait((running,))


async def test_one_that_only_shows_hears_of_nothing(house: House, service: Service) -> None:
    place = str(service.channel.id)
    silent = discord_channel(service.token, channel=place, people=house.accounts, listens=False)
    async with house.running(silent):
        request, message = await house.shown()
        pressed = await house.ana.press(message, "Approve")
        await house.ana.delete(message)  # of that it hears, after the press
        await service.message(lambda one: f"request {request.id}" in one.text and one is not message)
        assert pressed.replies == [] and await house.state(request) is State.PENDING
    assert not service.state.commands.get(service.guild_id)
