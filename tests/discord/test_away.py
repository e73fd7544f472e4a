"""What people did to messages and threads while the bot was away is found out when it is back."""

from __future__ import annotations

import pytest
from tests.discord.house import House, thread_of
from tests.discord.service import Message, Service
from tests.discord.test_moved import moved

from signoff.core.request import ApprovalRequest, State


async def anew(house: House, request: ApprovalRequest, old: Message) -> Message:
    """Another message about a request, once the inbox knows of it."""
    found = await house.service.message(lambda one: f"request {request.id}" in one.text and one is not old)

    async def stands() -> bool:
        return await house.inbox().where(request.id) == f"{found.place.id}/{found.id}"

    await house.until(stands)
    return found


async def approve(house: House, request: ApprovalRequest, message: Message) -> None:
    await house.ana.press(message, "Approve")
    await house.becomes(request, State.APPROVED)


async def test_a_message_that_was_deleted_meanwhile_is_shown_again(house: House, service: Service) -> None:
    async with house.running():
        requests = await house.ask(tools=["one", "two", "three"])
        messages = [await house.message(request) for request in requests]
        both = await service.message(lambda one: "3 calls wait" in one.text)
    before = [one.edits for one in messages]
    await house.ana.delete(messages[1])
    async with house.running():
        again = await anew(house, requests[1], messages[1])
        assert again.place is messages[1].place
        await approve(house, requests[1], again)
    assert [messages[0].edits, messages[2].edits] == [before[0], before[2]], "the others were left alone"
    assert both.place.messages[both.id] is both


async def test_a_thread_that_was_deleted_meanwhile_is_made_again(house: House, service: Service) -> None:
    async with house.running():
        request, message = await house.shown()
    await house.ana.delete_place(thread_of(message))
    async with house.running():
        again = await anew(house, request, message)
        assert thread_of(again).name == thread_of(message).name
        await approve(house, request, again)


@pytest.mark.parametrize("locked", [False, True])
async def test_a_thread_that_was_archived_meanwhile_is_opened_or_left(
    house: House, service: Service, locked: bool
) -> None:
    async with house.running():
        request, message = await house.shown()
    await house.ana.archive(thread_of(message))
    if locked:
        await house.ana.lock(thread_of(message))
    async with house.running():
        if locked:
            message = await moved(house, request, message)
        await service.until(lambda: not thread_of(message).archived, "it stays archived")
        await approve(house, request, message)


async def test_what_happens_between_two_sessions_is_found_out(house: House, service: Service) -> None:
    async with house.running():
        request, message = await house.shown()
        await service.do(service.gateway.sessions.clear)  # nobody is told of anything
        await house.ana.delete(message)
        await service.invalidate()
        await approve(house, request, await anew(house, request, message))
    assert service.gateway.resumed == 0


async def test_a_look_takes_one_request_for_each_thread(house: House, service: Service) -> None:
    async with house.running():
        for talk in ("a", "b"):
            requests = await house.ask(tools=["one", "two", "three"], talk=talk)
            for request in requests:
                await house.message(request)
            await house.until(lambda first=requests[0].id: _knows(house, f"all:{first}"))
    before = len(service.requests)
    async with house.running():
        await service.asked("GET", "/channels/{}/messages", len(service.calls("GET", "/channels/{}/messages")) + 2)
        await house.shown(talk="c")
    asked = [one for one in service.requests[before:] if one.route.startswith("/channels/{}")]
    threads = {f"/channels/{one.place.id}/messages" for one in service.messages() if "3 calls wait" in one.text}
    looked = [one.path for one in asked if one.method == "GET" and one.path in threads]
    assert sorted(looked) == sorted(threads)
    assert not [one for one in asked if one.method == "PATCH"]


async def _knows(house: House, subject: str) -> bool:
    return bool(await house.inbox().where(subject))


async def test_what_cannot_be_looked_at_is_looked_at_later(
    house: House, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("signoff.channels.discord.waiting_cards._PAUSES", (0.01,) * 20)
    async with house.running():
        request, message = await house.shown()
    await house.ana.delete(message)
    service.fail(f"GET /channels/{message.place.id}/messages", 503, times=3)
    async with house.running():
        await approve(house, request, await anew(house, request, message))
