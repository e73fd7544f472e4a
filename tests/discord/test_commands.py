"""`/signoff`, mentions, and a bot that is somebody else's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import discord
import pytest
from discord.ext import commands
from tests.discord.house import House, plainly, told
from tests.discord.service import Service

from signoff.channels.discord.channel import DiscordChannel
from signoff.core.decision import ApprovalDecision
from signoff.core.notice import Asked
from signoff.core.people import Actor
from signoff.core.request import State
from signoff.errors import WrongUse
from signoff.ports import Heard

BEN = Actor(name="ben", roles=frozenset({"ops", "dev"}), via="terminal")
UPSERT = "/applications/{}/guilds/{}/commands"


class Worker:
    """Whoever is begun."""

    def __init__(self, says: str = "") -> None:
        self.says = says
        self.heard: asyncio.Queue[Heard] = asyncio.Queue()

    async def begin(self, heard: Heard) -> str:
        await self.heard.put(heard)
        return self.says


# --- commands ---


async def test_what_waits_is_listed_privately_with_the_way_there(house: House, service: Service) -> None:
    async with house.running():
        request, message = await house.shown()
        await service.asked("POST", UPSERT)
        answered = await house.ana.command("signoff pending", service.channel)
        text = await told(answered)
        assert request.id in text and f"/channels/{service.guild_id}/{message.place.id}/{message.id}" in text
        assert (await answered.acknowledged()).kind == "deferred"


@pytest.mark.mission("H12")
@pytest.mark.mission("H10")
async def test_h12_h10_the_self_test_is_called_from_discord_and_answered_where_it_was(
    house: House, service: Service
) -> None:
    async with house.running():
        await service.asked("POST", UPSERT)
        thread = await house.ana.start_thread(service.channel, "talk")
        assert "comes here" in await told(await house.ana.command("signoff test", thread))
        message = await service.message(lambda one: "May `signoff_test` run?" in one.text)
        assert message.place is thread and "nothing runs" in message.text and "`ana tries out" in message.text
        await house.ben.press(message, "Approve")
        await service.message(lambda one: one.id == message.id and "**Approved** by `ben`" in one.text)
        assert "in a thread of its own" in await told(await house.ana.command("signoff test", service.channel))
        await service.message(
            lambda one: "May `signoff_test` run?" in one.text and one.place not in (thread, service.channel)
        )


@pytest.mark.mission("H9")
async def test_h9_one_request_is_shown_and_what_was_decided(house: House, service: Service) -> None:
    async with house.running():
        request, _ = await house.shown()
        await service.asked("POST", UPSERT)
        reply = await (await house.dan.command("signoff show", service.channel, id=request.id[:5])).reply()
        assert "ACME" in reply.text and reply.message is not None and not reply.message.buttons and reply.is_private
        await house.broker.answer(request.id, ApprovalDecision(approved=False), by=BEN)
        text = await told(await house.dan.command("signoff history", service.channel, n=3))
        assert "pay_invoice" in text and "denied by `ben`" in text
        assert "no request has the ID" in await told(await house.ana.command("signoff show", service.channel, id="zz"))


async def test_whoever_is_not_on_file_is_shown_nothing(house: House, service: Service) -> None:
    async with house.running():
        request, _ = await house.shown()
        await service.asked("POST", UPSERT)
        for words, options in (("pending", {}), ("show", {"id": request.id}), ("history", {}), ("test", {})):
            answered = await service.person("eve").command(f"signoff {words}", service.channel, **options)
            text = await told(answered)
            assert "not listed here, so you cannot see what is asked" in text
            assert request.id not in text and len(answered.replies) == 1


async def test_the_command_is_added_once_beside_those_that_are_there(house: House, service: Service) -> None:
    theirs = {
        "id": "1",
        "name": "deploy",
        "type": 1,
        "description": "theirs",
        "application_id": "2",
        "guild_id": str(service.guild_id),
    }
    service.state.commands[service.guild_id] = [theirs]
    for _ in range(2):
        channel = house.channel()
        await channel.start(house.inbox())
        await channel.stop()
    assert [one["name"] for one in service.state.commands[service.guild_id]] == ["deploy", "signoff"]
    assert len(service.calls("POST", UPSERT)) == 1 and not service.state.commands.get(None)


async def test_without_the_right_to_add_commands_everything_else_works(house: House, service: Service) -> None:
    service.fail("GET /applications/*/guilds/*/commands", 403, code=50001, message="Missing Access")
    async with house.running():
        request, message = await house.shown()
        await house.ana.press(message, "Approve")
        await house.becomes(request, State.APPROVED)


# --- mentions ---


async def test_a_mention_in_the_channel_begins_in_a_thread_of_its_own(house: House, service: Service) -> None:
    worker = Worker("On it.")
    async with house.running(house.channel(begin=worker.begin, workers=["triage"])):
        said = await house.ana.say(service.channel, f"{service.bot.mention} sort the issues\nall of them")
        heard = await worker.heard.get()
        reply = await service.message(lambda one: one.content == "On it.")
        assert said.thread is not None and reply.place is said.thread
        assert said.thread.name == "sort the issues"
    assert heard.text == "sort the issues\nall of them" and (heard.by.name, heard.by.via) == ("ana", "discord")
    assert heard.at == f"{said.thread.id}/{said.id}" and (heard.channel, heard.id) == ("discord", str(said.id))


async def test_a_mention_in_a_thread_goes_on_there(house: House, service: Service) -> None:
    worker = Worker()
    async with house.running(house.channel(begin=worker.begin, workers=["triage", "billing"])):
        thread = await house.ana.start_thread(service.channel, "our talk")
        await service.until(lambda: thread in service.threads())
        said = await house.ana.say(thread, f"<@!{service.bot.id}> and now?")
        heard = await worker.heard.get()
    assert heard.at == f"{thread.id}/{said.id}" and heard.text == "and now?"
    assert len(service.threads()) == 1


@pytest.mark.parametrize(
    ("workers", "text", "reply"),
    [
        (["triage"], "", "`what to do`"),
        (["triage", "billing"], " ", "`triage: what to do`"),
    ],
)
async def test_a_mention_that_begins_nothing_is_told_how(
    house: House, service: Service, workers: list[str], text: str, reply: str
) -> None:
    worker = Worker()
    async with house.running(house.channel(begin=worker.begin, workers=workers)):
        said = await house.ana.say(service.channel, f"{service.bot.mention} {text}")
        answer = await service.message(lambda one: one.author is service.bot and reply in one.content)
    assert answer.reference is not None and int(answer.reference["message_id"]) == said.id
    assert worker.heard.empty() and not service.threads()


async def test_a_mention_by_whoever_is_not_on_file_begins_nothing(house: House, service: Service) -> None:
    worker, eve = Worker(), service.person("eve")
    async with house.running(house.channel(begin=worker.begin, workers=["triage"])):
        await eve.say(service.channel, f"{service.bot.mention} pay me")
        answer = await service.message(lambda one: one.author is service.bot)
    assert f'discord: "{eve.id}"' in answer.content and worker.heard.empty() and not service.threads()


async def test_nothing_else_that_is_said_is_heard(house: House, service: Service) -> None:
    worker = Worker()
    elsewhere = service.new_channel("elsewhere")
    async with house.running(house.channel(begin=worker.begin, workers=["triage"])):
        _, message = await house.shown()
        await house.ana.say(elsewhere, f"{service.bot.mention} not here")
        await house.ana.say(service.channel, "nobody in particular")
        await house.ana.say(message.place, "what do you think?", to=message)
        await house.ana.say(service.channel, f"{service.bot.mention} this one")
        heard = await worker.heard.get()
    assert heard.text == "this one" and worker.heard.empty()
    said = [one for one in service.messages() if one.author is service.bot and one.kind != 18]
    assert said == [message]


async def test_what_goes_wrong_at_the_beginning_is_told(house: House, service: Service) -> None:
    async def begin(heard: Heard) -> str:
        raise WrongUse("no `model` is set @everyone")

    async with house.running(house.channel(begin=begin, workers=["triage"])):
        await house.ana.say(service.channel, f"{service.bot.mention} go")
        answer = await service.message(lambda one: "Nothing was started" in one.content)
    assert "no `model` is set @everyone" in plainly(answer.content) and not answer.everyone


# --- a bot that is somebody else's ---


@asynccontextmanager
async def connected(service: Service, bot: discord.Client) -> AsyncIterator[None]:
    async with bot:
        running = asyncio.create_task(bot.start(service.token))
        await bot.wait_until_ready()
        yield
        await bot.close()
        await asyncio.wait((running,))


def around(house: House, bot: discord.Client, **options: Any) -> DiscordChannel:
    return DiscordChannel(bot, channel=str(house.service.channel.id), people=house.accounts, **options)


@pytest.mark.parametrize("kind", [discord.Client, commands.Bot])
async def test_a_bot_keeps_its_own_handlers(house: House, service: Service, kind: type[Any]) -> None:
    intents = discord.Intents(guilds=True, guild_messages=True)
    own: asyncio.Queue[Any] = asyncio.Queue()
    bot = kind(intents=intents) if kind is discord.Client else kind("!", intents=intents)

    @bot.event
    async def on_interaction(interaction: discord.Interaction) -> None:
        await own.put(interaction.custom_id)

    async with connected(service, bot):
        channel = around(house, bot)
        await channel.start(house.inbox())
        with pytest.raises(WrongUse, match="started already"):
            await channel.start(house.inbox())
        request, message = await _shown(house, channel)
        await (await house.ana.press(message, "Edit…")).modal()
        assert (await own.get()).startswith("signoff:1:edit:")
        await house.ana.press(message, "Approve")
        await house.becomes(request, State.APPROVED)
        assert (await own.get()).startswith("signoff:1:approve:")
        kept = bot._connection._view_store
        assert not bot.persistent_views and not kept._views and not kept._modals, "it would grow with every message"
        await channel.stop()
        second, other = (await house.ask())[0], None
        other = await house.ana.forge(message.place, message_id(second), message)
        assert (await own.get()) == message_id(second) and other.replies == []
        assert await house.state(second) is State.PENDING


def message_id(request: Any) -> str:
    return f"signoff:1:approve:{request.id}:{request.args_digest[:12]}"


async def _shown(house: House, channel: DiscordChannel) -> tuple[Any, Any]:
    [request] = await house.ask()
    at = await channel.show(Asked(request=request))
    return request, house.service.find(int(at.partition("/")[2]))


async def test_a_bot_with_commands_of_its_own_keeps_them(house: House, service: Service) -> None:
    bot = commands.Bot("!", intents=discord.Intents(guilds=True, guild_messages=True))

    @bot.tree.command(name="hello", description="theirs", guild=discord.Object(service.guild_id))
    async def hello(interaction: discord.Interaction) -> None:
        await interaction.response.send_message("hi", ephemeral=True)

    async with connected(service, bot):
        await bot.tree.sync(guild=discord.Object(service.guild_id))
        channel = around(house, bot)
        await channel.start(house.inbox())
        [request] = await house.ask()
        text = await told(await house.ana.command("signoff show", service.channel, id=request.id))
        assert "pay_invoice" in text
        assert await told(await house.ana.command("signoff pending", service.channel))
        assert await told(await house.ana.command("signoff history", service.channel, n=2))
        assert await told(await house.ana.command("hello", service.channel)) == "hi"
        await channel.stop()
        assert [one.name for one in bot.tree.get_commands(guild=discord.Object(service.guild_id))] == ["hello"]
    assert [one["name"] for one in service.state.commands[service.guild_id]] == ["hello", "signoff"]


async def test_a_start_that_was_given_up_can_be_tried_again(house: House, service: Service) -> None:
    bot = discord.Client(intents=discord.Intents(guilds=True, guild_messages=True))
    channel = around(house, bot)
    async with bot:
        await bot.login(service.token)
        starting = asyncio.create_task(channel.start(house.inbox()))  # as from `setup_hook`, before it is connected
        await asyncio.sleep(0)
        starting.cancel()
        await asyncio.wait((starting,))
        running = asyncio.create_task(bot.connect())
        await channel.start(house.inbox())
        request, message = await _shown(house, channel)
        await house.ana.press(message, "Deny")
        await house.becomes(request, State.DENIED)
        await channel.stop()
        await bot.close()
        await asyncio.wait((running,))


async def test_a_bot_that_is_not_logged_in_is_said(house: House) -> None:
    bot = discord.Client(intents=discord.Intents(guilds=True))
    with pytest.raises(WrongUse, match="logged in"):
        await around(house, bot).start(house.inbox())
