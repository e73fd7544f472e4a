"""The stand-in of Discord, seen through discord.py: rate limits, outages, lost answers, broken connections."""

from __future__ import annotations

import asyncio

import aiohttp
import discord
import pytest
from tests.discord.service import Service
from tests.discord.service.listener import Listener, room


class TestWhatGoesWrong:
    SEND = "POST /channels/*/messages"

    async def test_rate_limits_are_told_and_waited_for(self, service: Service, client: Listener) -> None:
        service.limit(self.SEND, times=2, retry_after=0.01)
        service.limit("PATCH *", retry_after=0.01, everywhere=True)
        sent = await room(client, service).send("at last")
        await sent.edit(content="and this")
        assert [one.status for one in service.requests if one.name.startswith("POST /channels")] == [429, 429, 200]
        assert len(service.messages()) == 1

    async def test_a_real_limit_keeps_the_client_below_it(self, service: Service, client: Listener) -> None:
        service.bucket(self.SEND, limit=3, per=0.1)
        await asyncio.gather(*(room(client, service).send(str(n)) for n in range(7)))
        assert len(service.messages()) == 7

    async def test_a_failure_is_a_failure_so_often(self, service: Service, client: Listener) -> None:
        service.fail(self.SEND, status=503)
        with pytest.raises(discord.DiscordServerError):
            await room(client, service).send("no")
        await room(client, service).send("yes")
        assert [message.content for message in service.messages()] == ["yes"]

    async def test_an_answer_can_be_held_and_can_be_lost(self, service: Service, client: Listener) -> None:
        before, after = service.hold(self.SEND), service.hold(self.SEND, after=True)
        sending = asyncio.create_task(room(client, service).send("held"))
        await before.reached()
        assert service.messages() == []
        before.release()
        await after.reached()
        assert [message.content for message in service.messages()] == ["held"] and not sending.done()
        after.release()
        await sending
        service.kill_response(self.SEND)
        with pytest.raises(aiohttp.ServerDisconnectedError):
            await room(client, service).send("lost", nonce="once")
        assert [message.content for message in service.messages()] == ["held", "lost"]
        again = await room(client, service).send("lost", nonce="once")
        assert again.id == service.messages()[-1].id and len(service.messages()) == 2

    @pytest.mark.parametrize("how", ["refused", "503"])
    async def test_an_outage_ends_and_what_was_missed_arrives(
        self, how: str, service: Service, client: Listener
    ) -> None:
        await service.down(how)
        with pytest.raises((OSError, discord.DiscordServerError)):
            await room(client, service).send("into the void")
        await service.person("ana").say(service.channel, f"{service.bot.mention} are you there?")
        await service.up()
        heard = await client.hear("message")
        assert heard.content.endswith("are you there?")
        await room(client, service).send("yes")

    async def test_the_gateway_asks_to_reconnect(self, service: Service, client: Listener) -> None:
        await service.reconnect()
        await service.resumed(1)
        await service.close_sockets(4000)
        await service.resumed(2)
        await service.person("ana").say(service.channel, f"{service.bot.mention} hello")
        await client.hear("message")
        assert service.gateway.identified == 1

    async def test_an_invalid_session_begins_anew(self, service: Service, client: Listener) -> None:
        await service.invalidate()
        await service.connected(2)
        await service.person("ana").say(service.channel, f"{service.bot.mention} hello")
        await client.hear("message")

    async def test_a_close_code_can_be_final(self, service: Service) -> None:
        client = Listener()
        await client.login(service.token)
        connecting = asyncio.create_task(client.connect(reconnect=True))
        await service.connected()
        await service.close_sockets(4004)
        with pytest.raises(discord.ConnectionClosed) as closed:
            await connecting
        assert closed.value.code == 4004
        await client.close()

    async def test_events_come_twice_and_out_of_order(self, service: Service, client: Listener) -> None:
        ana = service.person("ana")
        service.duplicate_next("MESSAGE_CREATE")
        await ana.say(service.channel, f"{service.bot.mention} twice")
        assert [(await client.hear("message")).content[-5:] for _ in range(2)] == ["twice", "twice"]
        service.reorder(2)
        await ana.say(service.channel, f"{service.bot.mention} first")
        await ana.say(service.channel, f"{service.bot.mention} other")
        assert [(await client.hear("message")).content[-5:] for _ in range(2)] == ["other", "first"]
