"""The stand-in of Discord, seen through discord.py: the limits that Discord documents, and permissions."""

from __future__ import annotations

import io
from typing import Any

import discord
import pytest
from discord.http import Route
from tests.discord.service import Service
from tests.discord.service.listener import Listener, asked, refused, room


def button(**changes: Any) -> dict[str, Any]:
    return {"type": 2, "style": 1, "label": "b", "custom_id": "b"} | changes


def rows(*children: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"type": 1, "components": list(children)}]


def menu(*options: dict[str, Any]) -> list[dict[str, Any]]:
    return rows({"type": 3, "custom_id": "m", "options": list(options)})


def option(n: int, **changes: Any) -> dict[str, Any]:
    return {"label": f"o{n}", "value": str(n)} | changes


FITS: list[dict[str, Any]] = [
    {"content": "x" * 2000},
    {"content": "\U0001f600" * 2000},
    {"embeds": [{"title": "x" * 256, "description": "x" * 4096}]},
    {"embeds": [{"title": " " + "x" * 256 + " "}]},
    {"embeds": [{"description": "x" * 600}] * 10},
    {"embeds": [{"footer": {"text": "x" * 2048}}]},
    {"content": "c", "components": rows(*(button(custom_id=f"{n}".ljust(100, "x")) for n in range(5))) * 1},
    {"content": "c", "components": [*(rows(button(custom_id=f"{n}", label="x" * 80))[0] for n in range(5))]},
    {"content": "c", "components": menu(*(option(n, label="x" * 100, description="x" * 100) for n in range(25)))},
]
BREAKS: list[tuple[dict[str, Any], str]] = [
    ({"content": "x" * 2001}, "content"),
    ({"content": "\U0001f600" * 2001}, "content"),
    ({"embeds": [{"title": "x" * 257}]}, "embeds.0.title"),
    ({"embeds": [{"description": "x" * 4097}]}, "embeds.0.description"),
    ({"embeds": [{"footer": {"text": "x" * 2049}}]}, "embeds.0.footer.text"),
    ({"embeds": [{"author": {"name": "x" * 257}}]}, "embeds.0.author.name"),
    ({"embeds": [{"fields": [{"name": "n", "value": "x" * 1025}]}]}, "embeds.0.fields.0.value"),
    ({"embeds": [{"fields": [{"name": "n", "value": " "}]}]}, "embeds.0.fields.0.value"),
    ({"embeds": [{"fields": [{"name": "n", "value": "v"}] * 26}]}, "embeds.0.fields"),
    ({"embeds": [{"description": "x" * 3001}] * 2}, "embeds"),
    ({"embeds": [{"title": "t"}] * 11}, "embeds"),
    ({"content": "c", "components": rows(button()) * 6}, "components"),
    ({"content": "c", "components": rows(*(button(custom_id=f"{n}") for n in range(6)))}, "components.0.components"),
    ({"content": "c", "components": rows(button(label="x" * 81))}, "components.0.components.0.label"),
    ({"content": "c", "components": rows(button(custom_id="x" * 101))}, "components.0.components.0.custom_id"),
    ({"content": "c", "components": rows(button(custom_id=""))}, "components.0.components.0.custom_id"),
    ({"content": "c", "components": rows(button(), button())}, "components.0.components.1.custom_id"),
    ({"content": "c", "components": menu(*(option(n) for n in range(26)))}, "components.0.components.0.options"),
    ({"content": "c", "components": menu(option(1, label="x" * 101))}, "components.0.components.0.options.0.label"),
    ({"content": "c", "components": menu(option(1, value="x" * 101))}, "components.0.components.0.options.0.value"),
    ({"content": "c", "components": menu(option(1), option(1))}, "components.0.components.0.options.1"),
    ({"content": "c", "nonce": "x" * 26}, "nonce"),
]


class TestLimits:
    async def send(self, client: discord.Client, service: Service, body: dict[str, Any]) -> Any:
        return await client.http.request(Route("POST", f"/channels/{service.channel.id}/messages"), json=body)

    async def test_what_fits_is_taken(self, service: Service, client: Listener) -> None:
        for body in FITS:
            await self.send(client, service, body)
        assert len(service.messages()) == len(FITS)

    async def test_what_does_not_fit_is_refused_at_its_place(self, service: Service, client: Listener) -> None:
        for body, where in BREAKS:
            with pytest.raises(discord.HTTPException) as caught:
                await self.send(client, service, body)
            assert (caught.value.status, caught.value.code) == (400, 50035), where
            errors: Any = service.refused[-1][1].errors
            for part in where.split("."):
                errors = errors[part]
            assert errors["_errors"], where
        assert service.messages() == []

    async def test_nothing_is_not_a_message(self, service: Service, client: Listener) -> None:
        for body in ({}, {"content": "  \n"}, {"embeds": [{"color": 5}]}):
            await refused(self.send(client, service, body), 50006)
        sent = await room(client, service).send("something")
        await refused(sent.edit(content=""), 50006)
        assert service.find(sent.id).content == "something"

    async def test_files_have_a_size(self, service: Service, client: Listener) -> None:
        whole = discord.File(io.BytesIO(b"x" * (10 * 1024 * 1024)), "fits.txt")
        await room(client, service).send(file=whole)
        more = discord.File(io.BytesIO(b"x" * (10 * 1024 * 1024 + 1)), "more.txt")
        await refused(room(client, service).send(file=more), 40005)

    async def test_threads_have_names(self, service: Service, client: Listener) -> None:
        channel = room(client, service)
        await channel.create_thread(name="x" * 100, type=discord.ChannelType.public_thread)
        for name in ("", "x" * 101):
            await refused(channel.create_thread(name=name, type=discord.ChannelType.public_thread), 50035)

    async def test_modals_have_limits(self, service: Service, client: Listener) -> None:
        message = await asked(client, service)

        def text(**changes: Any) -> dict[str, Any]:
            made = {"type": 4, "custom_id": "t", "style": 1, "label": "l"} | changes
            return {"type": 1, "components": [made]}

        wrong = [
            {"title": "x" * 46, "components": [text()]},
            {"title": "t", "components": []},
            {"title": "t", "components": [text(custom_id=str(n)) for n in range(6)]},
            {"title": "t", "components": [text(label="x" * 46)]},
            {"title": "t", "components": [text(value="x" * 4001)]},
            {"title": "t", "components": [text(value="xx", max_length=1)]},
            {"title": "t", "components": [text(), text()]},
        ]
        click = await service.person("ana").press(message, "Approve")
        path = f"/interactions/{click.interaction.id}/{click.token}/callback"
        for data in wrong:
            await refused(
                client.http.request(Route("POST", path), json={"type": 9, "data": {"custom_id": "m", **data}}), 50035
            )
        fits = {"custom_id": "m", "title": "x" * 45, "components": [text(label="x" * 45, value="x" * 4000)]}
        await client.http.request(Route("POST", path), json={"type": 9, "data": fits})
        assert (await click.modal()).values == {"t": "x" * 4000}


class TestPermissions:
    async def test_each_one_that_is_missing_is_felt(self, service: Service, client: Listener) -> None:
        channel = room(client, service)
        sent = await channel.send("before")
        thread = await channel.create_thread(name="t", type=discord.ChannelType.public_thread)

        def public() -> Any:
            return channel.create_thread(name="n", type=discord.ChannelType.public_thread)

        cases = [
            ("view_channel", lambda: channel.send("x"), 50001),
            ("view_channel", lambda: client.fetch_channel(channel.id), 50001),
            ("send_messages", lambda: channel.send("x"), 50013),
            ("send_messages_in_threads", lambda: thread.send("x"), 50013),
            ("create_public_threads", public, 50013),
            ("attach_files", lambda: channel.send(file=discord.File(io.BytesIO(b"x"), "x.txt")), 50013),
            ("embed_links", lambda: channel.send(embed=discord.Embed(title="t")), 50013),
            ("read_message_history", lambda: channel.fetch_message(sent.id), 50001),
        ]
        for permission, work, code in cases:
            await service.deny(service.channel, permission)
            await refused(work(), code)
            await service.allow(service.channel, permission)
        await service.deny(service.channel, "read_message_history")
        assert [message async for message in channel.history()] == []
        await service.deny(service.channel, "send_messages")
        await sent.edit(content="own messages can be edited without it")

    async def test_embeds_are_dropped_in_silence(self, service: Service, client: Listener) -> None:
        await service.deny(service.channel, "embed_links")
        sent = await room(client, service).send("text", embed=discord.Embed(title="gone"))
        assert sent.embeds == [] and service.find(sent.id).text == "text"

    async def test_answers_to_interactions_need_none(self, service: Service, client: Listener) -> None:
        message = await asked(client, service)
        await service.deny(service.channel, "send_messages", "embed_links", "attach_files")
        click = await service.person("ana").press(message, "Approve")
        interaction = await client.hear("interaction")
        await interaction.response.send_message(embed=discord.Embed(title="Still here"))
        assert (await click.reply()).text == "Still here"

    async def test_the_client_learns_of_it(self, service: Service, client: Listener) -> None:
        await service.deny(service.channel, "send_messages")
        await service.person("ana").say(service.channel, "after that")
        await client.hear("message")
        channel = room(client, service)
        assert not channel.permissions_for(channel.guild.me).send_messages
