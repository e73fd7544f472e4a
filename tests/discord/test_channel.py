"""The channel against the stand-in of Discord: where notices stand, and what happens when Discord has trouble."""

from __future__ import annotations

import asyncio

import pytest
from tests.discord.house import House, thread_of
from tests.discord.service import Message, Service

from signoff.core.decision import ApprovalDecision
from signoff.core.notice import Asked, RunResult
from signoff.core.people import Actor
from signoff.core.request import State
from signoff.core.run import RunState
from signoff.delivery.delivery_status import troubles_of
from signoff.errors import ChannelFailed, WrongUse
from signoff.ports import Channel

BEN = Actor(name="ben", roles=frozenset({"ops", "dev"}), via="terminal")


async def test_a_call_stands_in_a_thread_of_its_own_and_is_brought_up_to_date(house: House, service: Service) -> None:
    async with house.running():
        request, message = await house.shown()
        assert "May `pay_invoice` run?" in message.text and "ACME" in message.text
        assert thread_of(message).parent is service.channel and thread_of(message).name == "triage · talk"
        await house.broker.answer(request.id, ApprovalDecision(approved=True), by=BEN)
        settled = await house.message(request, lambda one: "by `ben`" in one.text)
        assert settled is message and not settled.buttons
    assert len(service.threads()) == 1 and len(service.messages(thread_of(message))) == 1


async def test_calls_of_one_run_share_a_thread_and_keep_their_order(house: House, service: Service) -> None:
    async with house.running():
        requests = await house.ask(tools=["one", "two", "three"])
        messages = [await house.message(request) for request in requests]
        await service.message(lambda one: "3 calls wait" in one.text)
        [other] = await house.ask(talk="another")
        elsewhere = await house.message(other)
    assert len({message.place.id for message in messages}) == 1 and messages[0].place is not elsewhere.place
    assert [message.id for message in messages] == sorted(message.id for message in messages)
    assert [f"({number} of 3)" in message.text for number, message in enumerate(messages, 1)] == [True] * 3


async def test_what_a_run_came_to_is_said_in_its_thread(house: House, service: Service) -> None:
    async with house.running():
        _, message = await house.shown()
        channel = house.channel()
        await channel.start(house.inbox("other"))
        said = RunResult(run="talk", state=RunState.DONE, worker="triage", text="Paid @everyone")
        at = await channel.show(said, beside=f"{message.place.id}/{message.id}")
        again = await channel.show(said, beside=f"{message.place.id}/{message.id}")
        await channel.stop()
    assert at == again and len(service.messages(thread_of(message))) == 2
    last = service.messages(thread_of(message))[-1]
    assert "triage" in last.text and "Paid" in last.text and not last.everyone and not last.mentions


async def test_nothing_that_is_sent_mentions_anybody_but_who_may_answer(house: House, service: Service) -> None:
    async with house.running():
        _, message = await house.shown(args={"to": "@everyone <@1>", "amount": 1})
        await (await service.person("eve").press(message, "Deny")).reply()
        await (await house.ana.press(message, "Remember…")).reply()
        await house.ana.press(message, "Deny")
        await service.message(lambda one: "was denied" in one.text)
    sent = [one.payload for one in service.requests if one.method in ("POST", "PATCH")]
    bodies = [body for one in sent if isinstance(one, dict) for body in (one, one.get("data") or {})]
    spoken = [body for body in bodies if body.get("content") or body.get("embeds")]
    assert len(spoken) >= 4 and all(body["allowed_mentions"]["parse"] == [] for body in spoken)
    assert not any(body["allowed_mentions"].get(who) for body in spoken for who in ("roles", "replied_user"))
    named = [body["allowed_mentions"]["users"] for body in spoken if "users" in body["allowed_mentions"]]
    assert [sorted(map(int, one)) for one in named] == [sorted(one.id for one in house.people.values())]


# --- a second try makes nothing twice ---


@pytest.mark.parametrize("route", ["POST /channels/*/messages", "POST /channels/*/threads"])
async def test_what_was_sent_though_the_reply_was_lost_is_found_again(
    house: House, service: Service, route: str
) -> None:
    service.kill_response(route)
    async with house.running():
        [request] = await house.ask()
        message = await house.message(request)
        await house.broker.answer(request.id, ApprovalDecision(approved=False), by=BEN)
        await house.message(request, lambda one: "was denied" in one.text)
    assert len(service.threads()) == 1 and service.messages(service.threads()[0]) == [message]


async def test_what_was_sent_though_the_reply_was_lost_is_found_again_after_a_while_too(
    house: House, service: Service
) -> None:
    channel = house.channel()
    await channel.start(house.inbox())
    [request] = await house.ask()
    service.kill_response("POST /channels/*/messages")
    with pytest.raises(ChannelFailed) as failure:
        await channel.show(Asked(request=request))
    service.state._nonces.clear()  # as after some minutes
    at = await channel.show(Asked(request=request), at=failure.value.at)
    await channel.stop()
    [message] = service.messages(service.threads()[0])
    assert at == f"{message.place.id}/{message.id}"


async def test_what_another_process_sent_and_did_not_write_down_is_found_again(house: House, service: Service) -> None:
    first, second = house.channel(), house.channel()
    await first.start(house.inbox())
    [request] = await house.ask()
    at = await first.show(Asked(request=request))
    await first.stop()
    service.state._nonces.clear()  # as after some minutes
    await second.start(house.inbox())
    assert await second.show(Asked(request=request)) == at
    assert await second.show(Asked(request=request), at=at) == at
    await second.stop()
    assert len(service.threads()) == 1 and len(service.messages(service.threads()[0])) == 1


async def test_a_thread_without_its_message_is_said_and_used(house: House, service: Service) -> None:
    channel = house.channel()
    await channel.start(house.inbox())
    [request] = await house.ask()
    service.fail("POST /channels/*/messages", 503)
    with pytest.raises(ChannelFailed) as failure:
        await channel.show(Asked(request=request))
    [thread] = service.threads()
    assert failure.value.at == f"{thread.id}/" and failure.value.again and failure.value.whole
    at = await channel.show(Asked(request=request), at=failure.value.at)
    await channel.stop()
    assert at.startswith(failure.value.at) and len(service.threads()) == 1


# --- messages and threads that people do something to ---


async def test_a_deleted_message_comes_back_while_it_waits(house: House, service: Service) -> None:
    async with house.running():
        request, message = await house.shown()
        await house.ana.delete(message)
        anew = await service.message(lambda one: f"request {request.id}" in one.text and one is not message)
        assert anew.place is message.place
        await house.until(lambda: _stands(house, request.id, anew))
        await house.ana.press(anew, "Approve")
        await house.becomes(request, State.APPROVED)


async def test_a_deleted_message_about_several_calls_comes_back(house: House, service: Service) -> None:
    async with house.running():
        requests = await house.ask(tools=["one", "two"])
        for request in requests:
            await house.message(request)
        both = await service.message(lambda one: "2 calls wait" in one.text)
        await house.until(lambda: _knows(house, f"all:{requests[0].id}"))
        await house.ana.delete(both)
        anew = await service.message(lambda one: "2 calls wait" in one.text and one is not both)
    assert anew.place is both.place and len(service.messages(thread_of(anew))) == 3


async def _knows(house: House, subject: str) -> bool:
    return bool(await house.inbox().where(subject))


async def _stands(house: House, request_id: str, message: Message) -> bool:
    return await house.inbox().where(request_id) == f"{message.place.id}/{message.id}"


async def test_a_deleted_message_stays_away_once_it_is_settled(
    house: House, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("signoff.channels.discord.waiting_cards._LATE", 0.05)  # no inbox is ever told where it stands
    channel = house.channel()
    await channel.start(house.inbox("other"))
    [request] = await house.ask()
    at = await channel.show(Asked(request=request))
    await house.ana.delete(*service.messages(service.threads()[0]))
    denied = await house.broker.answer(request.id, ApprovalDecision(approved=False), by=BEN)
    assert await channel.show(Asked(request=denied), at=at) == at
    await channel.stop()
    assert service.messages(service.threads()[0]) == []


async def test_a_deleted_thread_is_made_anew(house: House, service: Service) -> None:
    async with house.running():
        request, message = await house.shown()
        await house.ana.delete_place(thread_of(message))
        anew = await service.message(lambda one: f"request {request.id}" in one.text and one.place is not message.place)
        assert thread_of(anew).name == "triage · talk"


async def test_a_locked_thread_is_left_for_a_new_one(house: House, service: Service) -> None:
    async with house.running():
        _, message = await house.shown()
        await house.ana.lock(thread_of(message))
        await house.ana.archive(thread_of(message))
        _, other = await house.shown()
    assert other.place is not message.place and len(service.threads()) == 2


async def test_an_archived_thread_is_opened_again(house: House, service: Service) -> None:
    async with house.running():
        request, message = await house.shown()
        await house.ana.archive(thread_of(message))
        await house.broker.answer(request.id, ApprovalDecision(approved=False), by=BEN)
        await house.message(request, lambda one: "was denied" in one.text)
        await house.ana.archive(thread_of(message))
        _, other = await house.shown()
    assert other.place is message.place and len(service.threads()) == 1


async def test_what_a_moderator_hid_is_shown_again(house: House, service: Service) -> None:
    channel = house.channel()
    await channel.start(house.inbox("other"))
    [request] = await house.ask()
    at = await channel.show(Asked(request=request))
    [message] = service.messages(service.threads()[0])
    await house.ana.suppress_embeds(message)
    assert "ACME" not in message.text
    await channel.show(Asked(request=request), at=at)
    await channel.stop()
    assert "ACME" in message.text and message.flags & 4 == 0


# --- Discord has trouble ---


async def test_a_rate_limit_is_waited_for(house: House, service: Service) -> None:
    service.limit("POST /channels/*/messages", times=2, retry_after=0.05)
    async with house.running():
        request, message = await house.shown()
        service.limit("PATCH /channels/*/messages/*", times=1, retry_after=0.05)
        await house.broker.answer(request.id, ApprovalDecision(approved=True), by=BEN)
        await house.message(request, lambda one: not one.buttons)
    assert service.messages(thread_of(message)) == [message]


async def test_a_long_rate_limit_says_how_long(house: House, service: Service) -> None:
    channel = house.channel()
    await channel.start(house.inbox())
    [request] = await house.ask()
    service.limit("POST /channels/*/messages", retry_after=600)
    with pytest.raises(ChannelFailed) as failure:
        await channel.show(Asked(request=request))
    await channel.stop()
    assert failure.value.after == 600 and failure.value.again


@pytest.mark.parametrize(
    ("status", "code", "again", "whole"), [(503, 0, True, True), (403, 50013, False, False), (400, 50035, False, False)]
)
async def test_what_discord_refuses_is_told_in_words(
    house: House, service: Service, status: int, code: int, again: bool, whole: bool
) -> None:
    channel = house.channel()
    await channel.start(house.inbox())
    [request] = await house.ask()
    service.fail("POST /channels/*/threads", status, code=code, message="Not so")
    with pytest.raises(ChannelFailed) as failure:
        await channel.show(Asked(request=request))
    await channel.stop()
    assert (failure.value.again, failure.value.whole) == (again, whole)
    assert service.token not in str(failure.value)
    assert "Discord has a server error" in str(failure.value) if whole else "Not so" in str(failure.value)


@pytest.mark.parametrize("how", ["refused", "503"])
async def test_an_outage_is_waited_for_and_everything_comes_after_it(house: House, service: Service, how: str) -> None:
    async with house.running():
        first, message = await house.shown()
        await service.down(how)
        await house.broker.answer(first.id, ApprovalDecision(approved=True), by=BEN)
        [second] = await house.ask()

        async def in_trouble() -> bool:
            return bool(await troubles_of(house.broker.ledger, [second.id]))

        await house.until(in_trouble)
        await service.up()
        await house.message(first, lambda one: not one.buttons)
        await house.message(second)
        await service.resumed()
    assert len(service.messages(thread_of(message))) == 2


async def test_the_connection_is_resumed_and_a_click_meanwhile_is_not_lost(house: House, service: Service) -> None:
    async with house.running():
        request, message = await house.shown()
        await service.close_sockets(4000)
        await service.resumed()
        await house.ana.press(message, "Approve")
        assert (await house.becomes(request, State.APPROVED)).decision is not None


async def test_a_connection_that_discord_py_gives_up_is_begun_anew(house: House, service: Service) -> None:
    async with house.running():
        request, message = await house.shown()
        await service.close_sockets(4013)
        await service.connected(2)
        await house.ana.press(message, "Deny")
        await house.becomes(request, State.DENIED)


async def test_what_cannot_be_begun_anew_is_said_and_tried_again(house: House, service: Service) -> None:
    async with house.running():
        request, message = await house.shown()
        await service.deny(service.channel, "attach_files")
        await service.close_sockets(4013)
        await service.connected(2)
        [second] = await house.ask()

        async def said() -> bool:
            troubles = await troubles_of(house.broker.ledger, [second.id])
            return any("Attach Files" in one.problem for one in troubles.get(second.id, ()))

        await house.until(said)
        await service.allow(service.channel, "attach_files")
        await service.connected(3)
        await house.ana.press(message, "Approve")
        await house.becomes(request, State.APPROVED)


async def test_whoever_is_not_connected_says_so(house: House) -> None:
    [request] = await house.ask()
    channel: Channel = house.channel()
    with pytest.raises(ChannelFailed, match="not connected") as failure:
        await channel.show(Asked(request=request))
    assert failure.value.whole and failure.value.again
    await channel.start(house.inbox())
    await channel.stop()
    with pytest.raises(ChannelFailed, match="not connected"):
        await channel.show(Asked(request=request))


async def test_it_can_be_started_again(house: House, service: Service) -> None:
    [request] = await house.ask()
    channel = house.channel()
    for _ in range(2):
        await channel.start(house.inbox())
        await channel.show(Asked(request=request))
        await channel.stop()
    assert len(service.messages(service.threads()[0])) == 1
    assert not [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]


# --- it cannot be used at all ---


async def test_a_refused_token_is_said_without_the_token(house: House, service: Service) -> None:
    from signoff.channels.discord.bot import discord_channel

    wrong = "NzkyNzE1NDU0MTk2MDg4ODQy.X-hvzA.Ovy4MCQywSkoMRRclStW4xAYK7I"
    channel = discord_channel(wrong, channel=str(service.channel.id), people={}, secret="DISCORD_TOKEN")
    with pytest.raises(WrongUse, match="Discord refused the token in DISCORD_TOKEN") as refused:
        await channel.start(house.inbox())
    assert wrong not in str(refused.value)


async def test_missing_permissions_are_named_with_what_they_are_for(house: House, service: Service) -> None:
    await service.deny(service.channel, "embed_links", "attach_files")
    with pytest.raises(WrongUse, match="Embed Links, to show") as wrong:
        await house.channel().start(house.inbox())
    assert "Attach Files, to attach" in str(wrong.value) and "Send Messages" not in str(wrong.value)


@pytest.mark.parametrize("channel", ["123456789012345678", "general", ""])
async def test_a_channel_that_is_not_there_is_said(house: House, service: Service, channel: str) -> None:
    from signoff.channels.discord.bot import discord_channel

    with pytest.raises(WrongUse, match="Discord channel"):
        await discord_channel(service.token, channel=channel, people={}).start(house.inbox())


async def test_an_outage_at_the_start_is_no_wrong_use(house: House, service: Service) -> None:
    channel = house.channel()
    await service.down()
    with pytest.raises(ChannelFailed) as failure:
        await channel.start(house.inbox())
    assert failure.value.again and failure.value.whole
    await service.up()
    await channel.start(house.inbox())
    await channel.stop()


async def test_a_check_goes_through_it_step_by_step(service: Service) -> None:
    from signoff.channels.discord.bot import check

    steps = [one async for one in check(service.token, channel=str(service.channel.id))]
    assert len(steps) == 11 and not any(problem for _, problem in steps)
    await service.deny(service.channel, "create_public_threads")
    steps = [one async for one in check(service.token, channel=str(service.channel.id))]
    assert [step for step, problem in steps if problem] == ["may Create Public Threads"]
    [*_, (step, problem)] = [one async for one in check("wrong", channel="1", secret="DISCORD_TOKEN")]
    assert "token" in step and "DISCORD_TOKEN" in problem
