"""The stand-in of Discord, seen through discord.py: logging in, messages, threads; and what it refuses to know."""

from __future__ import annotations

import asyncio
import io
import os
import sys
from typing import Any

import discord
import pytest
from discord.http import Route
from tests import start
from tests.discord.service import Place, Refusal, Service
from tests.discord.service.listener import Listener, asked, refused, room
from tests.discord.service.pointed import ENVIRONMENT
from tests.discord.service.running import plain_intents, running


class TestLoggingIn:
    async def test_a_client_sees_its_guild_its_channel_and_what_it_may_do(
        self, service: Service, client: Listener
    ) -> None:
        assert client.user is not None and client.user.id == service.bot.id
        channel = room(client, service)
        rights = channel.permissions_for(channel.guild.me)
        assert rights.view_channel and rights.send_messages and rights.create_public_threads and rights.embed_links
        assert not rights.manage_messages and not rights.administrator

    async def test_a_wrong_token_isrefused(self, service: Service) -> None:
        with pytest.raises(discord.LoginFailure):
            async with running(Listener(), service, token="wrong"):
                pass

    async def test_a_privileged_intent_has_to_be_switched_on(self, service: Service) -> None:
        intents = plain_intents()
        intents.message_content = True
        with pytest.raises(discord.PrivilegedIntentsRequired):
            async with running(Listener(intents), service):
                pass
        service.switch_on("message_content")
        async with running(Listener(intents), service) as client:
            await service.person("ana").say(service.channel, "to nobody")
            assert (await client.hear("message")).content == "to nobody"

    async def test_what_people_say_is_blank_unless_the_bot_is_mentioned(
        self, service: Service, client: Listener
    ) -> None:
        ana = service.person("ana")
        await ana.say(service.channel, "to nobody")
        assert (await client.hear("message")).content == ""
        await ana.say(service.channel, f"{service.bot.mention} to you")
        heard = await client.hear("message")
        assert heard.content.endswith("to you") and client.user in heard.mentions and heard.author.id == ana.id

    async def test_without_the_intent_there_are_no_messages(self, service: Service) -> None:
        async with running(Listener(discord.Intents(guilds=True)), service) as client:
            await service.person("ana").say(service.channel, f"{service.bot.mention} hello")
            message = await asked(client, service)
            await service.person("ana").press(message, "Approve")
            assert (await client.heard.get())[0] == "interaction"

    async def test_a_bot_in_another_process_logs_in(self, service: Service) -> None:
        code = (
            "import asyncio, discord, os\n"
            "from tests.discord.service.pointed import point_at\n"
            f"point_at(os.environ['{ENVIRONMENT}'])\n"
            "class C(discord.Client):\n"
            "    async def on_ready(self):\n"
            f"        await self.get_channel({service.channel.id}).send('from afar')\n"
            "        await self.close()\n"
            f"C(intents=discord.Intents(guilds=True)).run({service.token!r}, log_handler=None)\n"
        )
        environment = {**os.environ, ENVIRONMENT: service.url}
        process = start.Process([sys.executable, "-c", code], env=environment)
        message = await service.message(lambda one: one.content == "from afar")
        assert message.author is service.bot
        assert await asyncio.to_thread(process.wait, 20) == 0

    async def test_the_program_itself_starts_pointed(self, service: Service) -> None:
        environment = {**os.environ, ENVIRONMENT: service.url}
        command = [sys.executable, "-m", "tests.discord.service.pointed", "--help"]
        done = await asyncio.to_thread(start.run, command, env=environment, capture_output=True)
        assert done.returncode == 0 and b"signoff" in done.stdout


class TestMessages:
    async def test_sent_edited_read_and_deleted(self, service: Service, client: Listener) -> None:
        channel = room(client, service)
        sent = await channel.send("one", embed=discord.Embed(title=" Title ", description="Text"))
        kept = service.find(sent.id)
        assert kept.content == "one" and kept.embeds[0]["title"] == "Title"
        assert (await client.hear("message")).id == sent.id
        await sent.edit(content="two")
        assert kept.content == "two" and kept.embeds and kept.edits == 1
        assert await client.hear("edited") == sent.id
        assert (await channel.fetch_message(sent.id)).content == "two"
        await channel.send("three")
        assert [message.content async for message in channel.history(limit=10)] == ["three", "two"]
        assert [message.content async for message in channel.history(after=sent)] == ["three"]
        await sent.delete()
        assert await client.hear("deleted") == sent.id
        with pytest.raises(discord.NotFound) as caught:
            await channel.fetch_message(sent.id)
        assert caught.value.code == 10008

    async def test_files_come_along_and_can_be_read_again(self, service: Service, client: Listener) -> None:
        sent = await room(client, service).send("see", file=discord.File(io.BytesIO(b"\x00whole"), "call.txt"))
        assert await sent.attachments[0].read() == b"\x00whole"
        assert service.find(sent.id).attachments[0].data == b"\x00whole"
        edited = await sent.edit(content="still", attachments=sent.attachments)
        assert [one.filename for one in edited.attachments] == ["call.txt"]
        edited = await sent.edit(attachments=[])
        assert edited.attachments == []

    async def test_the_same_nonce_makes_one_message_for_some_minutes(self, service: Service, client: Listener) -> None:
        channel = room(client, service)
        first = await channel.send("one", nonce="n1")
        assert (await channel.send("one", nonce="n1")).id == first.id
        assert len(service.messages()) == 1
        service.clock.advance(3600)
        assert (await channel.send("one", nonce="n1")).id != first.id

    async def test_mentions_ping_only_as_far_as_allowed(self, service: Service, client: Listener) -> None:
        ana = service.person("ana")
        text = f"{ana.mention} @everyone"
        loud = await room(client, service).send(text)
        quiet = await room(client, service).send(text, allowed_mentions=discord.AllowedMentions.none())
        assert [user.id for user in service.find(loud.id).mentions] == [ana.id]
        assert not service.find(loud.id).everyone, "the bot may not mention everyone"
        assert service.find(quiet.id).mentions == []

    async def test_others_messages_cannot_be_edited(self, service: Service, client: Listener) -> None:
        said = await service.person("ana").say(service.channel, "mine")
        message = await room(client, service).fetch_message(said.id)
        with pytest.raises(discord.Forbidden) as caught:
            await message.edit(content="yours")
        assert caught.value.code == 50005

    async def test_moderators_delete_and_suppress(self, service: Service, client: Listener) -> None:
        boss = service.person("boss")
        sent = [await room(client, service).send("x", embed=discord.Embed(title="t")) for _ in range(3)]
        kept = [service.find(one.id) for one in sent]
        await boss.suppress_embeds(kept[0])
        assert (await room(client, service).fetch_message(sent[0].id)).embeds == []
        await boss.delete(kept[0])
        assert await client.hear("deleted") == sent[0].id
        await boss.delete(*kept[1:])
        assert service.messages() == [] and kept[1].is_deleted


class TestThreads:
    async def test_a_thread_is_made_written_into_archived_and_found_again(
        self, service: Service, client: Listener
    ) -> None:
        channel = room(client, service)
        thread = await channel.create_thread(name="run", type=discord.ChannelType.public_thread)
        await thread.send("inside")
        place = service.place(thread.id)
        assert [message.content for message in service.messages(place)] == ["inside"]
        assert service.messages(service.channel)[0].kind == 18, "the channel says that a thread was made"
        await thread.edit(archived=True)
        assert place.archived
        assert [one.id async for one in channel.archived_threads()] == [thread.id]
        assert [one.id for one in await channel.guild.active_threads()] == []
        await thread.send("opens it again")
        assert not place.archived
        fetched = await client.fetch_channel(thread.id)
        assert isinstance(fetched, discord.Thread) and fetched.parent_id == channel.id

    async def test_replies_are_as_documented(self, service: Service, client: Listener) -> None:
        channel, message = room(client, service), await asked(client, service)
        await channel.create_thread(name="one", type=discord.ChannelType.public_thread)
        sent = await channel.send("reply", reference=await channel.fetch_message(message.id))
        await (await channel.fetch_message(sent.id)).create_thread(name="two")
        made = [one for one in service.requests if one.route.endswith("/threads")]
        assert [one.status for one in made] == [201, 201]
        listed = await client.http.request(Route("GET", "/guilds/{guild_id}/threads/active", guild_id=service.guild_id))
        assert listed["has_more"] is False and len(listed["threads"]) == 2
        raw = await client.http.get_message(service.channel.id, sent.id)
        assert raw["message_reference"]["type"] == 0 and raw["message_reference"]["message_id"] == str(message.id)
        raw = await client.http.get_message(service.channel.id, message.id)
        assert [raw["components"][0]["id"], raw["components"][0]["components"][0]["id"]] == [1, 2]
        assert raw["author"]["primary_guild"] is None

    @pytest.mark.parametrize("first", ["defer", "send_message"])
    async def test_only_what_made_a_message_tells_of_it(self, service: Service, client: Listener, first: str) -> None:
        told: asyncio.Queue[Any] = asyncio.Queue()

        async def answer(interaction: discord.Interaction) -> None:
            arguments = ("yes",) if first == "send_message" else ()
            told.put_nowait(await getattr(interaction.response, first)(*arguments))

        client.answer = answer
        await service.person("ana").press(await asked(client, service), "Approve")
        assert ((await told.get()).resource is not None) == (first == "send_message")

    async def test_one_in_which_nothing_happens_is_archived(self, service: Service, client: Listener) -> None:
        await room(client, service).create_thread(name="one", type=discord.ChannelType.public_thread)
        [thread] = service.threads()
        await service.pass_time(23 * 3600)
        await service.person("ana").say(thread, "still here")
        await service.pass_time(23 * 3600)
        assert not thread.archived
        await service.pass_time(3600)
        assert thread.archived

    async def test_a_nonce_holds_for_all_threads_and_for_deleted_messages(
        self, service: Service, client: Listener
    ) -> None:
        thread = await room(client, service).create_thread(name="one", type=discord.ChannelType.public_thread)
        sent = await room(client, service).send("hello", nonce="n")
        assert (await thread.send("hello", nonce="n")).id == sent.id
        await sent.delete()
        await refused(thread.send("hello", nonce="n"), 10008)
        service.clock.advance(300)
        assert (await thread.send("hello", nonce="n")).id != sent.id

    async def test_a_thread_on_a_message_has_its_id_and_there_is_one(self, service: Service, client: Listener) -> None:
        message = await room(client, service).send("start")
        thread = await message.create_thread(name="run")
        assert thread.id == message.id
        await thread.add_user(discord.Object(service.person("ana").id))
        assert {member.id for member in await thread.fetch_members()} == {service.bot.id, service.person("ana").id}
        with pytest.raises(discord.HTTPException) as caught:
            await message.create_thread(name="again")
        assert caught.value.code == 160004

    async def test_locked_archived_and_deleted_threads_refuse(self, service: Service, client: Listener) -> None:
        boss = service.person("boss")
        thread = await room(client, service).create_thread(name="run", type=discord.ChannelType.public_thread)
        message = await thread.send("inside")
        place = service.place(thread.id)
        await boss.archive(place)
        with pytest.raises(discord.HTTPException) as caught:
            await message.edit(content="no")
        assert caught.value.code == 50083
        await boss.lock(place)
        await refused(thread.send("no"), 50083)
        await boss.archive(place, archived=False)
        await refused(thread.send("no"), 160005)
        with pytest.raises(Refusal):
            await service.person("ana").say(place, "no")
        await boss.delete_place(place)
        assert await client.hear("thread deleted") == thread.id
        await refused(thread.send("no"), 10003)


class TestStrictness:
    """What no document describes is an error, and is kept."""

    @pytest.fixture
    def errors(self, service: Service) -> Any:
        yield service.errors
        service.errors.clear()

    async def test_unknown_requests_are_kept(self, service: Service, client: Listener, errors: list[str]) -> None:
        calls: list[tuple[str, str, Any, int]] = [
            ("GET", "/nothing/here", None, 404),
            ("PUT", f"/channels/{service.channel.id}/messages", {}, 405),
            ("POST", f"/channels/{service.channel.id}/messages", {"content": "x", "colour": 5}, 400),
            ("POST", f"/channels/{service.channel.id}/messages", {"embeds": [{"titel": "x"}]}, 400),
            ("POST", f"/channels/{service.channel.id}/messages", {"content": "x", "flags": 1 << 15}, 400),
            ("POST", f"/channels/{service.channel.id}/threads", {"name": "x", "colour": 1}, 400),
        ]
        for number, (method, path, body, status) in enumerate(calls, 1):
            with pytest.raises(discord.HTTPException) as caught:
                await client.http.request(Route(method, path), **({"json": body} if body is not None else {}))
            assert caught.value.status == status
            assert len(errors) == number and path in errors[-1]

    async def test_a_request_without_a_token_is_kept(
        self, service: Service, client: Listener, errors: list[str]
    ) -> None:
        client.http.token, token = None, client.http.token
        with pytest.raises(discord.HTTPException) as caught:
            await room(client, service).send("who am I?")
        client.http.token = token
        assert caught.value.status == 401 and len(errors) == 1

    async def test_waiting_for_what_never_comes_says_what_there_is(self, service: Service, client: Listener) -> None:
        place: Place = service.channel
        await room(client, service).send("only this")
        with pytest.raises(AssertionError, match="only this"):
            await service.message(lambda one: one.content == "that", timeout=0.01, place=place)
