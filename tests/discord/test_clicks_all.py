"""Approve all: only what can be read in the thread at that moment."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.discord.house import House, told
from tests.discord.service import Message, Service

from signoff.core.request import State

NOT_SHOWN = "not approved. It is not shown: somebody deleted or hid its message. Open it there first."


async def both(service: Service) -> Message:
    return await service.message(lambda one: "2 calls wait" in one.text)


async def test_a_call_whose_message_was_hidden_is_left_out_and_comes_back(house: House, service: Service) -> None:
    async with house.running():
        one, two = await house.ask(count=2)
        await house.message(one)
        hidden = await house.message(two)
        about_both = await both(service)
        await house.ben.suppress_embeds(hidden)
        text = await told(await house.ana.press(about_both, "Approve all"))
        assert text == f"**1** `pay_invoice`: approved.\n**2** `pay_invoice`: {NOT_SHOWN}"
        assert [await house.state(one), await house.state(two)] == [State.APPROVED, State.PENDING]
        await service.until(lambda: not hidden.flags & 4)


@pytest.mark.parametrize("is_known", [False, True])
async def test_a_call_whose_message_was_deleted_is_left_out(house: House, service: Service, is_known: bool) -> None:
    async with house.running():
        one, two = await house.ask(count=2)
        await house.message(one)
        message = await house.message(two)
        about_both = await both(service)
        service.fail("POST /channels/*/messages", status=403, code=50013, times=100)
        service.fail("POST /channels/*/threads", status=403, code=50013, times=100)
        await house.ben.delete(message)
        if is_known:
            await house.until(lambda: _is_nowhere(house, two.id))
        text = await told(await house.ana.press(about_both, "Approve all"))
        assert text.splitlines()[1] == f"**2** `pay_invoice`: {NOT_SHOWN}"
        assert [await house.state(one), await house.state(two)] == [State.APPROVED, State.PENDING]


async def _is_nowhere(house: House, request_id: str) -> bool:
    return not await house.inbox().where(request_id)


async def test_nothing_is_approved_while_discord_does_not_say_what_is_shown(house: House, service: Service) -> None:
    async with house.running():
        requests = await house.ask(count=2)
        for request in requests:
            await house.message(request)
        about_both = await both(service)
        service.fail("GET /channels/*/messages", status=403, code=50001)
        text = await told(await house.ana.press(about_both, "Approve all"))
        assert text.count("Discord does not say whether it is shown here") == 2
        assert [await house.state(one) for one in requests] == [State.PENDING] * 2
        await told(await house.ana.press(about_both, "Approve all"))
        assert [await house.state(one) for one in requests] == [State.APPROVED] * 2


async def test_the_next_process_numbers_them_alike(house: House, service: Service, tmp_path: Path) -> None:
    async with house.running():
        one, _ = await house.ask(tools=["one", "two"])
        first = await house.message(one)
        await house.ana.press(first, "Deny")
        about_both = await service.message(lambda found: "1 of 2 calls wait" in found.text)
    again = House(service, tmp_path)
    try:
        async with again.running():
            assert await told(await again.ana.press(about_both, "Deny all")) == "**2** `two`: denied."
    finally:
        again.close()
