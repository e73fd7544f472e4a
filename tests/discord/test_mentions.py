"""What is said to the bot and begins nothing leaves no thread; and no secret becomes the name of one."""

from __future__ import annotations

import asyncio

import pytest
from tests.discord.house import House
from tests.discord.service import Service

from signoff.ports import Heard

SECRET = "sk-live-1234567890abcdefghij"


class Beginner:
    def __init__(self) -> None:
        self.heard: asyncio.Queue[Heard] = asyncio.Queue()

    async def begin(self, heard: Heard) -> str:
        await self.heard.put(heard)
        return ""


@pytest.mark.parametrize(
    ("said", "name"),
    [
        (f"rotate {SECRET} now", "rotate ⟦masked 1: API key⟧ now"),
        (f"{'please ' * 7}rotate {SECRET} now", f"{'please ' * 7}rotate…"),
        (
            "use -----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----",
            "use ⟦masked 1: private key⟧",
        ),
        ("sort the issues\nall of them", "sort the issues"),
    ],
)
async def test_a_secret_does_not_become_the_name_of_a_thread(
    house: House, service: Service, said: str, name: str
) -> None:
    beginner = Beginner()
    async with house.running(house.channel(begin=beginner.begin, workers=("triage",))):
        await house.ana.say(service.channel, f"{service.bot.mention} {said}")
        heard = await beginner.heard.get()
    [thread] = service.threads()
    assert thread.name == name
    assert heard.text == said, "the worker is told all of it"


@pytest.mark.parametrize(
    ("said", "reply"),
    [
        ("do it", "Name a worker, as in `triage: what to do`. There are: triage, billing."),
        ("billing:", "Say what billing should do."),
    ],
)
async def test_no_thread_is_made_where_no_worker_is_named(
    house: House, service: Service, said: str, reply: str
) -> None:
    beginner = Beginner()
    async with house.running(house.channel(begin=beginner.begin, workers=("triage", "billing"))):
        asked = await house.ana.say(service.channel, f"{service.bot.mention} {said}")
        answer = await service.message(lambda one: one.author is service.bot)
        assert answer.content == reply
        assert answer.reference is not None and int(answer.reference["message_id"]) == asked.id
        assert not service.threads() and beginner.heard.empty()
        await house.ana.say(service.channel, f"{service.bot.mention} billing: do it")
        await beginner.heard.get()
    assert len(service.threads()) == 1


async def test_a_stranger_is_told_that_nothing_is_begun(house: House, service: Service) -> None:
    beginner, eve = Beginner(), service.person("eve")
    async with house.running(house.channel(begin=beginner.begin, workers=("triage",))):
        await eve.say(service.channel, f"{service.bot.mention} pay me")
        answer = await service.message(lambda one: one.author is service.bot)
    assert answer.content.startswith("You are not listed here, so nothing is started.")
    assert f'`discord: "{eve.id}"`' in answer.content
    assert not service.threads() and beginner.heard.empty()


async def test_another_bot_is_neither_heard_nor_answered(house: House, service: Service) -> None:
    """Two bots that answer each other would never come to an end."""
    beginner, eve, bot = Beginner(), service.person("eve"), service.person("another bot")
    bot.user.bot = True
    async with house.running(house.channel(begin=beginner.begin, workers=("triage",))):
        await bot.say(service.channel, f"{service.bot.mention} pay me")
        asked = await eve.say(service.channel, f"{service.bot.mention} pay me")
        answer = await service.message(lambda one: one.author is service.bot)
    assert answer.reference is not None and int(answer.reference["message_id"]) == asked.id
    assert [one for one in service.messages() if one.author is service.bot] == [answer]
    assert not service.threads() and beginner.heard.empty()


async def test_a_bot_that_can_begin_nothing_says_nothing_about_mentions(house: House, service: Service) -> None:
    """Those who look after it know that `workers` is missing; whoever else mentions it need not be told."""
    async with house.running():
        for one in (house.ana, service.person("eve")):
            await one.say(service.channel, f"{service.bot.mention} do it")
        await house.shown()  # whatever was to be said before was said
    assert [one.author.name for one in service.messages(service.channel) if one.kind != 18] == ["ana", "eve"]


@pytest.mark.parametrize("reads", [False, True])
async def test_a_mention_of_the_role_of_the_bot_is_taken_for_one_of_the_bot(
    house: House, service: Service, monkeypatch: pytest.MonkeyPatch, reads: bool
) -> None:
    """It has the bot's name, and whoever types that is offered it."""
    beginner = Beginner()
    if reads:  # Discord does not say whether it keeps these words to itself
        monkeypatch.setattr(service.gateway, "_readable", lambda _session, _event, data: data)
    async with house.running(house.channel(begin=beginner.begin, workers=("triage",))):
        said = await house.ana.say(service.channel, f"<@&{service.state.role_id}> do it")
        if reads:
            assert (await beginner.heard.get()).text == "do it"
            return
        answer = await service.message(lambda one: one.author is service.bot)
    assert answer.content == "Discord does not show me messages to my role: mention the bot itself."
    assert answer.reference is not None and int(answer.reference["message_id"]) == said.id
    assert not service.threads() and beginner.heard.empty()


async def test_whoever_cannot_be_given_a_thread_is_told_why(house: House, service: Service) -> None:
    beginner = Beginner()
    async with house.running(house.channel(begin=beginner.begin, workers=("triage",))):
        await house.shown()  # it has started
        await service.deny(service.channel, "create_public_threads")
        said = await house.ana.say(service.channel, f"{service.bot.mention} do it")
        answer = await service.message(lambda one: one.author is service.bot and one.id > said.id)
    assert answer.content == (
        "Nothing was started: I cannot create a thread here. That needs the permission Create Public Threads."
    )
    assert beginner.heard.empty()
