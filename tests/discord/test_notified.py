"""Who is notified when a call is asked about: those who may answer it, by their own accounts, and nobody else."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from tests.discord.house import House
from tests.discord.service import Message, Service
from tests.discord.timed import Timed

from signoff.channels.discord.bot import discord_channel
from signoff.core.people import Actor, Delegation
from signoff.core.request import State
from signoff.core.verdict import Requirement


def notified(message: Message) -> list[str]:
    return [user.name for user in message.notified]


async def test_those_who_may_answer_are_notified_and_become_members_of_the_thread(
    house: House, service: Service
) -> None:
    async with house.running():
        _, message = await house.shown(need=Requirement(role="ops"))
    assert notified(message) == ["ana", "ben"]
    assert {house.ana.id, house.ben.id} <= set(message.place.members) and house.dan.id not in message.place.members
    [sent] = [one.payload for one in service.requests if one.method == "POST" and "embeds" in (one.payload or {})]
    allowed = sent["allowed_mentions"]
    assert allowed["parse"] == [] and set(map(int, allowed["users"])) == {house.ana.id, house.ben.id}


async def test_whoever_the_rule_leaves_out_is_not_notified(house: House) -> None:
    async with house.running():
        need = Requirement(role="ops", not_by=frozenset({"requester"}))
        _, message = await house.shown(need=need, requester="Ana")
    assert notified(message) == ["ben"]


async def test_without_a_role_everybody_on_file_may_answer_and_is_notified(house: House) -> None:
    async with house.running():
        _, message = await house.shown()
    assert notified(message) == ["ana", "ben", "dan"]


async def test_whoever_stands_in_for_somebody_is_notified_too(house: House) -> None:
    now = house.broker.clock.now()
    away = Delegation(absent="ben", deputy="dan", since=now, until=now + timedelta(days=1))
    await house.broker.people.delegate(away)
    async with house.running():
        _, message = await house.shown(need=Requirement(role="dev"))
    assert notified(message) == ["ben", "dan"]


async def test_what_a_call_says_notifies_nobody(house: House) -> None:
    async with house.running():
        said = f"<@{house.dan.id}> @everyone @here <@&{house.service.guild_id}>"
        _, message = await house.shown(args={"to": said, "amount": 1}, need=Requirement(role="dev"), tool=said)
    assert notified(message) == ["ben"] and not message.everyone


async def test_an_edit_notifies_nobody_and_leaves_who_was_asked(house: House) -> None:
    async with house.running():
        request, message = await house.shown(need=Requirement(role="ops"))
        asked = message.content
        await house.ana.press(message, "Deny")
        await house.becomes(request, State.DENIED)
        await house.message(request, lambda one: "was denied" in one.text)
    assert message.edits and message.content == asked and notified(message) == ["ana", "ben"]


async def test_calls_that_are_asked_at_once_notify_each_person_once(house: House, service: Service) -> None:
    async with house.running():
        requests = await house.ask(count=3, need=Requirement(role="ops"))
        messages = [await house.message(one) for one in requests]
        await service.message(lambda one: "3 calls wait" in one.text)
    assert [notified(one) for one in messages] == [["ana", "ben"], [], []]


async def test_a_message_that_was_deleted_notifies_again(house: House) -> None:
    async with house.running():
        request, message = await house.shown(need=Requirement(role="dev"))
        await house.ana.delete(message)
        again = await house.message(request, lambda one: one.id != message.id)
    assert notified(again) == ["ben"]


async def test_the_project_may_have_nobody_notified(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISCORD_TOKEN", service.token)
    house = Timed(service, tmp_path, {"notify": "nobody"})
    [request] = await house.ask()
    async with house.posting() as post:
        await post.round()
    house.close()
    message = house.about(request)
    assert "Approve" in message.buttons and message.content == "" and notified(message) == []


async def test_no_more_are_notified_than_fit_and_the_rest_is_counted(house: House, service: Service) -> None:
    crowd = [service.person(f"crowd{number}") for number in range(60)]
    house.broker.people.follow(lambda: {one.name: frozenset({"ops"}) for one in crowd})
    accounts = {str(one.id): Actor(name=one.name, roles=frozenset({"ops"})) for one in crowd}
    channel = discord_channel(service.token, channel=str(service.channel.id), people=accounts)
    async with house.running(channel):
        _, message = await house.shown(need=Requirement(role="ops"))
    assert notified(message) == [one.name for one in crowd[:50]]
    assert message.content.endswith("and 10 more") and len(message.content) <= 2000
