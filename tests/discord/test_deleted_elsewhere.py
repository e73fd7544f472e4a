"""What is deleted elsewhere is no matter of ours."""

from __future__ import annotations

from typing import Any

import pytest
from tests.discord.house import House
from tests.discord.service import Service

from signoff.core.request import State
from signoff.delivery.channel_inbox import StoreInbox


async def test_deletions_elsewhere_cost_nothing(
    house: House, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = service.new_channel("chat")
    reads = 0
    real = StoreInbox.pending

    async def counted(inbox: StoreInbox) -> Any:
        nonlocal reads
        reads += 1
        return await real(inbox)

    async with house.running():
        request, message = await house.shown()
        said = [await house.dan.say(other, "x") for _ in range(10)]
        monkeypatch.setattr(StoreInbox, "pending", counted)
        for one in said:
            await house.dan.delete(one)
        await house.dan.delete(message)  # events come in order: once it is back, the others were heard
        again = await service.message(lambda one: f"request {request.id}" in one.text and one is not message)
        await house.until(lambda: _stands(house, request.id, f"{again.place.id}/{again.id}"))
        monkeypatch.undo()
        await house.ana.press(again, "Approve")
        await house.becomes(request, State.APPROVED)
    assert 1 <= reads < 10


async def _stands(house: House, request_id: str, at: str) -> bool:
    return await house.inbox().where(request_id) == at


async def test_what_another_process_showed_comes_back_too(house: House, service: Service) -> None:
    async with house.running():
        request, message = await house.shown()
    async with house.running():
        await house.dan.delete(message)
        await service.message(lambda one: f"request {request.id}" in one.text and one is not message)
