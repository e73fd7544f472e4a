"""Threads that are archived or locked while a call waits in them: nobody could press anything there."""

from __future__ import annotations

import pytest
from tests.discord.house import House, thread_of
from tests.discord.service import Refusal, Service
from tests.discord.test_moved import moved

from signoff.channels.discord.waiting_cards import _MOST_OPENED
from signoff.core.request import State
from signoff.ports import Heard

DAY = 24 * 60 * 60


async def begin(_: Heard) -> str:
    return ""


async def test_threads_stay_open_for_as_long_as_discord_lets_them(house: House, service: Service) -> None:
    async with house.running(house.channel(begin=begin, workers=("triage",))):
        _, message = await house.shown()
        said = await house.ana.say(service.channel, f"{service.bot.mention} do it")
        await service.until(lambda: said.thread)
        assert [one.archive_after for one in service.threads()] == [7 * 24 * 60] * 2
        await service.pass_time(6 * DAY)
        assert not thread_of(message).archived


async def test_one_that_discord_archives_is_opened_again_while_a_call_waits(house: House, service: Service) -> None:
    async with house.running():
        request, message = await house.shown()
        for _ in range(2):
            await service.pass_time(8 * DAY)
            await service.until(lambda: not thread_of(message).archived, "it stays archived")
        await house.ana.press(message, "Approve")
        await house.becomes(request, State.APPROVED)
        await service.until(lambda: not message.buttons)
        await house.ana.archive(thread_of(message))
        other, _ = await house.shown(talk="another")  # whatever was to be done before was done
        assert thread_of(message).archived and other.state is State.PENDING


async def test_one_that_is_locked_is_left_at_once(house: House, service: Service) -> None:
    async with house.running():
        requests = await house.ask(tools=["one", "two"])
        messages = [await house.message(request) for request in requests]
        both = await service.message(lambda one: "2 calls wait" in one.text)
        await house.ana.lock(thread_of(both))
        anew = [await moved(house, *pair) for pair in zip(requests, messages, strict=True)]
        assert anew[0].place is anew[1].place
        await service.message(lambda one: "2 calls wait" in one.text, place=anew[0].place)
        await house.ana.press(anew[1], "Deny")
        await house.becomes(requests[1], State.DENIED)


async def test_one_that_is_archived_again_and_again_is_left_so(house: House, service: Service) -> None:
    async with house.running():
        _, message = await house.shown()
        for _ in range(_MOST_OPENED):
            await house.ana.archive(thread_of(message))
            await service.until(lambda: not thread_of(message).archived)
        await house.ana.archive(thread_of(message))
        await house.shown(talk="another")
        assert thread_of(message).archived
        with pytest.raises(Refusal, match="nothing can be pressed"):
            await house.ana.press(message, "Approve")


async def test_threads_of_others_are_none_of_our_business(house: House, service: Service) -> None:
    elsewhere = service.new_channel("chat")
    async with house.running():
        await house.shown()
        theirs = [await house.dan.start_thread(place, "talk") for place in (elsewhere, service.channel)]
        for thread in theirs:
            await house.dan.archive(thread)
        await house.shown(talk="another")
    assert all(thread.archived for thread in theirs)
