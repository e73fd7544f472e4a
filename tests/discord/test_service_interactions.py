"""The stand-in of Discord, seen through discord.py: presses, menus, modals and commands, and the answers to them."""

from __future__ import annotations

import io
from typing import Any

import discord
import pytest
from discord import app_commands
from discord.ext import commands
from tests.discord.service import Refusal, Service
from tests.discord.service.listener import Listener, asked, refused, room
from tests.discord.service.running import plain_intents, running


class TestInteractions:
    async def test_a_press_is_answered_in_private(self, service: Service, client: Listener) -> None:
        async def answer(interaction: discord.Interaction) -> None:
            await interaction.response.send_message(f"Thanks, {interaction.user.display_name}", ephemeral=True)

        client.answer = answer
        message = await asked(client, service)
        ana, ben = service.person("ana"), service.person("ben")
        reply = await (await ana.press(message, "Approve")).reply()
        assert reply.kind == "message" and reply.is_private and reply.text == "Thanks, Ana"
        assert reply.message is not None and ana.sees(reply.message) and not ben.sees(reply.message)
        assert reply.message not in service.messages()
        heard = await client.hear("interaction")
        assert heard.message.id == message.id and heard.user.id == ana.id and heard.channel_id == service.channel.id
        assert heard.app_permissions.embed_links and heard.guild_id == service.guild_id
        with pytest.raises(discord.NotFound):
            await room(client, service).fetch_message(reply.message.id)

    async def test_it_can_be_answered_once_only_and_not_too_late(self, service: Service, client: Listener) -> None:
        message = await asked(client, service)
        click = await service.person("ana").press(message, "Approve")
        interaction = await client.hear("interaction")
        await interaction.response.defer()
        assert (await click.acknowledged()).kind == "deferred update"
        interaction.response._response_type = None
        await refused(interaction.response.send_message("again"), 40060)
        await service.person("ana").press(message, "Approve")
        late = await client.hear("interaction")
        service.clock.advance(4)
        await refused(late.response.send_message("late"), 10062)
        await interaction.followup.send("still in time", ephemeral=True)
        service.clock.advance(15 * 60)
        await refused(interaction.followup.send("too late"), 50027)

    async def test_updating_deferring_and_following_up(self, service: Service, client: Listener) -> None:
        async def answer(interaction: discord.Interaction) -> None:
            match interaction.data["custom_id"]:  # type: ignore[index]
                case "update":
                    await interaction.response.edit_message(content="Done", view=None)
                case "think":
                    await interaction.response.defer(ephemeral=True, thinking=True)
                    await interaction.edit_original_response(content="Thought")
                    await interaction.followup.send("And more", ephemeral=True)
                case "later":
                    await interaction.response.defer()
                    await interaction.edit_original_response(content="Later", view=None)

        client.answer = answer
        ana = service.person("ana")
        names = ("update", "think", "later")
        message = await asked(client, service, *(discord.ui.Button(label=name, custom_id=name) for name in names))
        think = await ana.press(message, "think")
        assert (await think.acknowledged()).kind == "deferred"
        reply = await think.reply()
        assert reply.text == "Thought" and reply.is_private
        assert (await think.reply(1)).text == "And more"
        reply = await (await ana.press(message, "later")).reply()
        assert reply.kind == "update" and message.content == "Later" and message.buttons == []
        message = await asked(client, service, *(discord.ui.Button(label=name, custom_id=name) for name in names))
        reply = await (await ana.press(message, "update")).reply()
        assert reply.kind == "update" and message.content == "Done"

    async def test_the_first_follow_up_fills_what_was_promised(self, service: Service, client: Listener) -> None:
        async def answer(interaction: discord.Interaction) -> None:
            await interaction.response.defer(ephemeral=True, thinking=True)
            await interaction.followup.send("Here", file=discord.File(io.BytesIO(b"all"), "all.txt"))
            await interaction.delete_original_response()

        client.answer = answer
        click = await service.person("ana").press(await asked(client, service), "yes")
        reply = await click.reply()
        assert reply.is_private and reply.message is not None and reply.message.attachments[0].text == "all"
        await service.until(lambda: reply.message is not None and reply.message.is_deleted)

    async def test_a_modal_is_shown_filled_in_and_sent(self, service: Service, client: Listener) -> None:
        class Why(discord.ui.Modal, title="Why not?"):
            reason: Any = discord.ui.TextInput(label="Reason", custom_id="reason", min_length=3, max_length=20)
            more: Any = discord.ui.Label(
                text="More", component=discord.ui.TextInput(custom_id="more", default="nothing", required=False)
            )

        async def answer(interaction: discord.Interaction) -> None:
            if interaction.type is discord.InteractionType.component:
                await interaction.response.send_modal(Why(custom_id="why"))

        client.answer = answer
        modal = await (await service.person("ana").press(await asked(client, service), "Approve")).modal()
        assert modal.title == "Why not?" and modal.values == {"reason": "", "more": "nothing"}
        with pytest.raises(Refusal):
            await modal.submit({"reason": "no"})
        with pytest.raises(Refusal):
            await modal.submit({"Reason": "x" * 21})
        click = await modal.submit({"Reason": "too risky"})
        await client.hear("interaction")
        heard = await client.hear("interaction")
        assert heard.type is discord.InteractionType.modal_submit and heard.data["custom_id"] == "why"
        rows = heard.data["components"]
        assert rows[0]["components"][0]["value"] == "too risky" and rows[1]["component"]["value"] == "nothing"
        await heard.response.send_message("Denied", ephemeral=True)
        assert (await click.reply()).text == "Denied"

    async def test_a_menu_is_chosen_from(self, service: Service, client: Listener) -> None:
        options = [discord.SelectOption(label=f"Option {n}", value=str(n)) for n in range(3)]
        menu = discord.ui.Select(custom_id="menu", placeholder="Which?", options=options)
        message = await asked(client, service, menu)
        await service.person("ana").choose(message, "Which?", "Option 2")
        assert (await client.hear("interaction")).data["values"] == ["2"]
        with pytest.raises(Refusal):
            await service.person("ana").choose(message, "menu", "7")

    async def test_only_what_is_there_can_be_pressed_unless_it_is_forged(
        self, service: Service, client: Listener
    ) -> None:
        grey = discord.ui.Button(label="Grey", custom_id="grey", disabled=True)
        message = await asked(client, service, grey)
        ana = service.person("ana")
        for name in ("Grey", "Nothing"):
            with pytest.raises(Refusal):
                await ana.press(message, name)
        await ana.forge(service.channel, "forged:id", message)
        assert (await client.hear("interaction")).data["custom_id"] == "forged:id"
        await service.person("boss").delete(message)
        with pytest.raises(Refusal):
            await ana.press(message, "Grey")

    async def test_a_bot_with_a_command_tree_and_a_view(self, service: Service) -> None:
        class Yes(discord.ui.View):
            @discord.ui.button(label="Yes", custom_id="view:yes")
            async def yes(self, interaction: discord.Interaction, _: discord.ui.Button[Any]) -> None:
                await interaction.response.send_message("From the view", ephemeral=True)

        bot = commands.Bot(command_prefix=commands.when_mentioned, intents=plain_intents())
        group = app_commands.Group(name="signoff", description="What waits")

        @group.command(name="pending", description="What waits for you")
        async def pending(interaction: discord.Interaction, limit: int = 5) -> None:
            await interaction.response.send_message(f"Nothing, of {limit}", ephemeral=True, view=Yes(timeout=None))

        @bot.command()
        async def ping(context: commands.Context[Any]) -> None:
            await context.reply("pong")

        guild = discord.Object(service.guild_id)
        bot.tree.add_command(group, guild=guild)
        async with running(bot, service):
            assert [one.name for one in await bot.tree.sync(guild=guild)] == ["signoff"]
            assert [one.name for one in await bot.tree.fetch_commands(guild=guild)] == ["signoff"]
            ana = service.person("ana")
            reply = await (await ana.command("signoff pending", service.channel, limit=7)).reply()
            assert reply.text == "Nothing, of 7\nYes" and reply.is_private and reply.message is not None
            assert (await (await ana.press(reply.message, "Yes")).reply()).text == "From the view"
            for words, options in (("signoff", {"limit": 1}), ("signoff nothing", {})):
                with pytest.raises(Refusal):
                    await ana.command(words, service.channel, **options)
            with pytest.raises(AssertionError, match="nobody registers the command 'other'"):
                await ana.command("other", service.channel, patience=0)
            await ana.say(service.channel, f"{service.bot.mention} ping")
            pong = await service.message(lambda one: one.content == "pong")
            assert pong.reference is not None
