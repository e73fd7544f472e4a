"""A call that waits moves to a new thread when nobody can answer it where it was asked."""

from __future__ import annotations

import pytest
from tests.discord.house import House, thread_of
from tests.discord.service import Message, Refusal, Service

from signoff.core.decision import ApprovalDecision
from signoff.core.notice import Asked
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest, State
from signoff.core.verdict import Requirement
from signoff.errors import ChannelFailed

TWO = Requirement(quorum=2)
BEN = Actor(name="ben", roles=frozenset({"ops", "dev"}), via="terminal")


async def moved(house: House, request: ApprovalRequest, old: Message) -> Message:
    """The message about a request in another thread, once the inbox knows of it."""
    found = await house.service.message(lambda one: f"request {request.id}" in one.text and one.place is not old.place)

    async def stands() -> bool:
        return await house.inbox().where(request.id) == f"{found.place.id}/{found.id}"

    await house.until(stands)
    return found


@pytest.mark.parametrize("archived", [False, True])
async def test_a_call_in_a_locked_thread_is_asked_in_a_new_one(house: House, service: Service, archived: bool) -> None:
    async with house.running():
        request, message = await house.shown(need=TWO)
        await house.ana.lock(thread_of(message))
        if archived:
            await house.ana.archive(thread_of(message))
        with pytest.raises(Refusal, match="nothing can be pressed"):
            await house.ana.press(message, "Approve")
        await house.broker.answer(request.id, ApprovalDecision(approved=True), by=BEN)
        anew = await moved(house, request, message)
        assert thread_of(anew).name == thread_of(message).name
        await house.message(request, lambda one: "by `ben`" in one.text)
        await house.ana.press(anew, "Approve")
        await house.becomes(request, State.APPROVED)
        await service.until(lambda: not anew.buttons)
    if archived:
        return  # nothing can be said there
    link = f"https://discord.com/channels/{service.guild_id}/{anew.place.id}/{anew.id}"
    assert message.text == f"This thread is locked, so the question has moved: {link}"


async def test_whoever_was_notified_in_the_old_thread_is_notified_in_the_new_one(house: House) -> None:
    """Of calls that were asked at once, the first one notifies. It may be answered when the others move."""
    async with house.running():
        requests = await house.ask(count=3, need=Requirement(role="ops"))
        messages = [await house.message(one) for one in requests]
        await house.ana.press(messages[0], "Deny")
        await house.becomes(requests[0], State.DENIED)
        await house.ana.lock(thread_of(messages[1]))
        anew = [await moved(house, *pair) for pair in list(zip(requests, messages, strict=True))[1:]]
    assert [[user.name for user in one.notified] for one in anew] == [["ana", "ben"], []]


async def test_a_call_in_a_thread_that_the_bot_sees_no_longer_is_asked_in_a_new_one(
    house: House, service: Service
) -> None:
    async with house.running():
        request, message = await house.shown(need=TWO)
        service.fail(f"PATCH /channels/{message.place.id}/*", 403, code=50001, times=50)
        service.fail(f"POST /channels/{message.place.id}/*", 403, code=50001, times=50)
        await house.broker.answer(request.id, ApprovalDecision(approved=True), by=BEN)
        anew = await moved(house, request, message)
        await house.ana.press(anew, "Approve")
        await house.becomes(request, State.APPROVED)


async def test_one_that_was_deleted_before_anybody_knew_of_it_is_written_again(house: House, service: Service) -> None:
    """Discord still knows its nonce, and says that the message is gone."""
    channel = house.channel()
    await channel.start(house.inbox())
    [request] = await house.ask()
    service.kill_response("POST /channels/*/messages", times=2)
    at = ""
    for _ in range(2):
        with pytest.raises(ChannelFailed) as lost:
            await channel.show(Asked(request=request), at=at)
        at = lost.value.at
        await house.ana.delete(*service.messages(service.threads()[0]))
    shown = await channel.show(Asked(request=request), at=at)
    await channel.stop()
    [message] = service.messages(service.threads()[0])
    assert shown == f"{message.place.id}/{message.id}"
