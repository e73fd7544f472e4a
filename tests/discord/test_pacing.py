"""How often a bot connects when connections do not last: Discord takes 1,000 sessions a day."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from tests.discord.house import House
from tests.discord.service import Service

from signoff.channels.discord.backoff import Timing
from signoff.channels.discord.bot import Client, discord_channel
from signoff.core.request import State
from signoff.errors import ChannelFailed
from signoff.ports import Channel

DAY = 24 * 60 * 60


class Time:
    """Time that passes only while the bot waits to connect, and stops when it is up."""

    def __init__(self, *, pauses: int = 10**6) -> None:
        self.now = 0.0
        self.pauses: list[float] = []
        self._most = pauses
        self.is_up = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds
        if len(self.pauses) >= self._most:
            self.is_up.set()
            await asyncio.get_running_loop().create_future()

    def timing(self, draw: float = 1.0) -> Timing:
        return Timing(now=lambda: self.now, sleep=self.sleep, draw=lambda: draw)


def channel_by(house: House, timing: Timing) -> Channel:
    place = str(house.service.channel.id)
    return discord_channel(house.service.token, channel=place, people=house.accounts, timing=timing)


@asynccontextmanager
async def falling(channel: Channel, house: House) -> AsyncIterator[None]:
    """The channel was connected once, and from then on it is sent something that it cannot read."""
    unreadable = ("MESSAGE_CREATE", {"nobody": "can read this"})
    await channel.start(house.inbox())
    gateway = house.service.gateway
    gateway.after_ready = unreadable
    await house.service.do(lambda: [one.send(*unreadable) for one in gateway.sessions.values()])
    try:
        async with asyncio.timeout(30):
            yield
    finally:
        await channel.stop()


async def test_sessions_that_end_soon_are_begun_ever_more_rarely(
    house: House, service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "signoff.discord")
    time = Time(pauses=11)
    async with falling(channel_by(house, time.timing()), house):
        await time.is_up.wait()
    assert time.pauses == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    assert DAY / time.pauses[-1] * 2 < 1000, "also where half of it is drawn"
    said = [one.getMessage() for one in caplog.records if one.name == "signoff.discord"]
    assert said[0].startswith("Discord connection lost: discord.py failed: KeyError at ")
    assert said[0].endswith("; reconnecting in 1 seconds")


async def test_bots_that_fell_together_come_back_apart(house: House, service: Service) -> None:
    time = Time(pauses=3)
    async with falling(channel_by(house, time.timing(draw=0.5)), house):
        await time.is_up.wait()
    assert time.pauses == [0.75, 1.5, 3]


async def test_a_connection_that_lasted_is_begun_anew_soon(house: House, service: Service) -> None:
    time = Time()
    async with house.running(channel_by(house, time.timing())):
        request, message = await house.shown()
        for lasted in (0, 0, 0, 61):
            time.now += lasted
            seen = service.gateway.identified
            await service.close_sockets(4013)
            await service.connected(seen + 1)
            await house.shown()  # it is ready
        await house.ana.press(message, "Approve")
        await house.becomes(request, State.APPROVED)
    assert time.pauses == [1, 2, 4, 1]


async def test_sessions_that_discord_ends_are_counted_too(
    house: House, service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    """By itself discord.py would begin a new one every five seconds."""
    caplog.set_level(logging.WARNING, "signoff.discord")
    time = Time()
    async with house.running(channel_by(house, time.timing())):
        for _ in range(3):
            await house.shown()
            seen = service.gateway.identified
            await service.invalidate()
            await service.connected(seen + 1)
        await house.shown()
    assert time.pauses == [1, 2, 4]
    assert "Discord connection lost: Discord ended the session; reconnecting in 1 seconds" in caplog.messages


async def test_what_discord_py_stumbles_over_while_it_is_closed_is_not_why_the_session_ended(
    house: House, service: Service, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session that is begun anew just then fails with whatever the library finds closed."""
    caplog.set_level(logging.WARNING, "signoff.discord")
    connect = Client.connect

    async def stumbling(self: Client, *, reconnect: bool = True) -> None:
        try:
            await connect(self, reconnect=reconnect)
        finally:
            if self.is_closed():
                raise AssertionError("the transport is gone")

    monkeypatch.setattr(Client, "connect", stumbling)
    async with house.running(channel_by(house, Time().timing())):
        await house.shown()
        seen = service.gateway.identified
        await service.invalidate()
        await service.connected(seen + 1)
        await house.shown()
    [said] = [one for one in caplog.messages if "connection lost" in one]
    assert said == "Discord connection lost: Discord ended the session; reconnecting in 1 seconds"


async def test_the_last_sessions_of_a_day_are_left_to_people(
    house: House, service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "signoff.discord")
    service.state.session_limit = 25
    time = Time(pauses=8)
    async with falling(channel_by(house, time.timing()), house):
        await time.is_up.wait()
    assert service.gateway.identified == 5
    assert time.pauses[5:] == [3600, 3600, 3600], "Discord said four hours: it looks again every hour"
    assert "the bot has connected so often that Discord allows 20 of 1000 more today" in caplog.messages[-1]


async def test_a_start_that_gets_as_far_as_a_session_is_not_tried_too_often(house: House, service: Service) -> None:
    service.gateway.after_ready = ("MESSAGE_CREATE", {"nobody": "can read this"})
    channel = channel_by(house, Time().timing())
    asked: list[float | None] = []
    for _ in range(10):
        with pytest.raises(ChannelFailed, match=r"discord\.py failed: KeyError") as failure:
            await channel.start(house.inbox())
        asked.append(failure.value.after)
    assert asked == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]
