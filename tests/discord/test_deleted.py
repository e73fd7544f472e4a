"""Messages that are deleted the moment they are there, or again and again."""

from __future__ import annotations

import pytest
from tests.discord.house import House
from tests.discord.service import Message, Service

from signoff.channels.discord.waiting_cards import _MOST_DELETED
from signoff.core.decision import ApprovalDecision
from signoff.core.people import Actor
from signoff.core.request import State
from signoff.core.verdict import Requirement

BEN = Actor(name="ben", roles=frozenset({"ops", "dev"}), via="terminal")


async def anew(service: Service, request_id: str, *old: Message) -> Message:
    return await service.message(lambda one: f"request {request_id}" in one.text and one not in old)


async def test_one_that_is_deleted_before_anybody_noted_it_comes_back(house: House, service: Service) -> None:
    async with house.running():
        [request] = await house.ask()
        old: list[Message] = []
        for _ in range(3):
            message = await anew(service, request.id, *old)
            old.append(message)
            await house.ana.delete(message)
        last = await anew(service, request.id, *old)
        await house.until(lambda: _stands(house, request.id, last))
        await house.ana.press(last, "Approve")
        await house.becomes(request, State.APPROVED)


@pytest.mark.parametrize("what", ["message", "thread"])
async def test_one_of_which_discord_says_no_more_than_404_comes_back(house: House, service: Service, what: str) -> None:
    """The documented numbers, 10008 and 10003, are not all there is."""
    async with house.running():
        request, message = await house.shown(need=Requirement(quorum=2))
        place = f"/channels/{message.place.id}"
        service.fail(f"PATCH {place}/messages/{message.id}", 404, times=50, message="404: Not Found")
        if what == "thread":
            service.fail(f"POST {place}/messages", 404, times=50, message="404: Not Found")
        await house.broker.answer(request.id, ApprovalDecision(approved=True), by=BEN)
        again = await anew(service, request.id, message)
        assert (again.place is message.place) == (what == "message")


async def test_one_that_is_deleted_again_and_again_is_left_alone_at_last(house: House, service: Service) -> None:
    async with house.running():
        [request] = await house.ask()
        old: list[Message] = []
        for _ in range(_MOST_DELETED + 1):
            message = await anew(service, request.id, *old)
            await house.until(lambda message=message: _stands(house, request.id, message))
            old.append(message)
            await house.ana.delete(message)
        other, _ = await house.shown()  # all that was to be done before was done
        assert other.id != request.id
    assert [one.id for one in await house.broker.pending()] == [request.id, other.id], "it waits, and the inbox has it"
    assert len(list(service.calls("POST", "/channels/{}/messages"))) == len(old) + 1


async def _stands(house: House, request_id: str, message: Message) -> bool:
    return await house.inbox().where(request_id) == f"{message.place.id}/{message.id}"
