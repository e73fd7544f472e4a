"""`/signoff` beside what a bot has already, for several channels, and when Discord does not take it at once."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import discord
import pytest
from discord import app_commands
from tests.discord.house import House, told
from tests.discord.service import Service
from tests.discord.service.running import running

from signoff.channels.discord import slash_commands
from signoff.channels.discord.bot import COMMANDS, Client, check
from signoff.channels.discord.channel import DiscordChannel
from signoff.errors import ChannelFailed

UPSERT = "/applications/{}/guilds/{}/commands"
LIST = "GET /applications/*/guilds/*/commands"


class Mine(discord.Client):
    """Somebody's own bot with a tree of commands."""

    def __init__(self) -> None:
        super().__init__(intents=discord.Intents(guilds=True, guild_messages=True))
        self.tree = app_commands.CommandTree(self)


def about(bot: discord.Client, house: House, place: int, name: str = "discord") -> DiscordChannel:
    return DiscordChannel(bot, channel=str(place), people=house.accounts, name=name)


@pytest.mark.parametrize("is_everywhere", [False, True])
async def test_a_command_of_that_name_is_left_alone(
    house: House, service: Service, is_everywhere: bool, caplog: pytest.LogCaptureFixture
) -> None:
    bot = Mine()
    where = None if is_everywhere else discord.Object(service.guild_id)

    @bot.tree.command(name="signoff", description="sign off for today", guild=where)
    async def mine(interaction: discord.Interaction) -> None:
        await interaction.response.send_message("bye", ephemeral=True)

    async with running(bot, service):
        await bot.tree.sync(guild=where)
        channel = about(bot, house, service.channel.id)
        await channel.start(house.inbox())
        assert await told(await house.ana.command("signoff", service.channel)) == "bye"
        await channel.stop()
        assert bot.tree.get_command("signoff", guild=where) is mine
    kept = [one["description"] for known in service.state.commands.values() for one in known]
    assert kept == ["sign off for today"] and "does not replace it" in caplog.text


async def test_one_that_another_program_made_is_left_alone(
    house: House, service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "signoff.discord")
    theirs = {
        "id": "1",
        "name": "signoff",
        "type": 1,
        "description": "theirs",
        "application_id": "2",
        "guild_id": str(service.guild_id),
    }
    service.state.commands[service.guild_id] = [theirs]
    steps = dict([one async for one in check(service.token, channel=str(service.channel.id))])
    assert "another command /signoff" in steps[COMMANDS]
    channel = house.channel()
    await channel.start(house.inbox())
    await channel.stop()
    assert service.state.commands[service.guild_id] == [theirs] and "does not replace it" in caplog.text


async def test_an_older_one_of_ours_is_brought_up_to_date(house: House, service: Service) -> None:
    old = {"type": 1, "name": "pending", "description": "as it was", "options": []}
    ours = {
        "id": "1",
        "name": "signoff",
        "type": 1,
        "description": "as it was",
        "application_id": "2",
        "guild_id": str(service.guild_id),
    }
    service.state.commands[service.guild_id] = [ours | {"options": [old]}]
    channel = house.channel()
    await channel.start(house.inbox())
    await channel.stop()
    [kept] = service.state.commands[service.guild_id]
    assert [one["name"] for one in kept["options"]] == ["pending", "show", "history", "test"]


async def test_two_channels_of_one_bot_share_the_command(
    house: House, service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    second = service.new_channel("second")
    bot, guild = Mine(), discord.Object(service.guild_id)
    async with running(bot, service):
        first = about(bot, house, service.channel.id)
        night = about(bot, house, second.id, "night")
        await first.start(house.inbox())
        await night.start(house.inbox("night"))
        await service.asked("POST", UPSERT)
        await first.stop()
        assert await told(await house.ana.command("signoff pending", second)) == "No pending requests."
        await night.stop()
        assert bot.tree.get_command("signoff", guild=guild) is None
    assert "not found" not in caplog.text


@pytest.mark.parametrize("has_tree", [False, True])
async def test_a_bot_is_served_wherever_its_tree_is_and_left_as_it_was(
    house: House, service: Service, has_tree: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Most bots have their tree in a variable of the module, and some have none."""
    bot = discord.Client(intents=discord.Intents(guilds=True, guild_messages=True))
    tree = app_commands.CommandTree(bot) if has_tree else None
    async with running(bot, service):
        channel = about(bot, house, service.channel.id)
        await channel.start(house.inbox())
        await service.asked("POST", UPSERT)
        assert await told(await house.ana.command("signoff pending", service.channel)) == "No pending requests."
        service.state.commands[service.guild_id].append(_command("deploy", service))
        theirs = await house.ana.command("deploy", service.channel)
        assert await told(await house.ana.command("signoff pending", service.channel))
        await channel.stop()
        assert theirs.replies == []
        assert tree is None or not tree.get_commands(guild=discord.Object(service.guild_id))
        if not has_tree:
            app_commands.CommandTree(bot)  # the owner may still have one
    assert ("'deploy' not found" in caplog.text) is has_tree and "'signoff' not found" not in caplog.text


async def test_what_another_version_added_is_told_what_there_is(house: House, service: Service) -> None:
    async with house.running():
        await service.asked("POST", UPSERT)
        [ours] = service.state.commands[service.guild_id]
        ours["options"].append({"type": 1, "name": "later", "description": "of a later version", "options": []})
        assert (
            await told(await house.ana.command("signoff later", service.channel))
            == "There are `/signoff pending`, `/signoff show`, `/signoff history` and `/signoff test`."
        )


async def test_a_command_while_the_bot_starts_is_answered(
    house: House, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slash_commands, "_STARTING", 60.0)
    async with house.running():
        await service.asked("POST", UPSERT)
    client, heard = Client(), asyncio.Event()

    async def on_interaction(_: discord.Interaction) -> None:
        heard.set()

    client.event(on_interaction)
    async with running(client, service):
        early = await house.ana.command("signoff pending", service.channel)
        await heard.wait()
        channel = about(client, house, service.channel.id)
        await channel.start(house.inbox())
        assert await told(early) == "No pending requests."
        await channel.stop()


def _command(name: str, service: Service) -> dict[str, Any]:
    known = {"id": "7", "name": name, "type": 1, "description": "theirs", "application_id": "2", "options": []}
    return known | {"guild_id": str(service.guild_id)}


async def test_it_is_tried_again_when_discord_has_trouble(
    house: House, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slash_commands, "_FIRST_PAUSE", 0.0)
    real, tries = slash_commands.add_command, list[int]()

    async def fails_at_first(client: discord.Client, guild_id: int) -> bool:
        tries.append(guild_id)
        if len(tries) < 3:
            raise ChannelFailed("Discord cannot be reached", whole=True)
        return await real(client, guild_id)

    monkeypatch.setattr(slash_commands, "add_command", fails_at_first)
    async with house.running():
        await service.asked("POST", UPSERT)
    assert tries == [service.guild_id] * 3


async def test_a_bot_that_may_add_no_commands_is_told_the_scope(service: Service) -> None:
    service.fail(LIST, 403, code=50001, message="Missing Access")
    steps = [one async for one in check(service.token, channel=str(service.channel.id))]
    assert [step for step, problem in steps if problem] == [COMMANDS]
    assert "applications.commands" in dict(steps)[COMMANDS]
