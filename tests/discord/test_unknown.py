"""A call of which it is unknown whether it ran waits for somebody too: it is shown again where it cannot be seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.discord.house import thread_of
from tests.discord.service import Message, Service
from tests.discord.test_away import anew
from tests.discord.timed import Timed

from signoff.broker import Broker
from signoff.core.decision import ApprovalDecision
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest, State
from signoff.core.verdict import Requirement


@pytest.fixture
def house(service: Service, tmp_path: Path) -> Iterator[Timed]:
    made = Timed(service, tmp_path)
    yield made
    made.close()


async def unknown(house: Timed) -> tuple[ApprovalRequest, Message]:
    """A call whose process died, and the message that asks what became of it."""
    request, _ = await house.shown(need=Requirement(role="ops"))
    await house.broker.answer(request.id, ApprovalDecision(approved=True), by=Actor(name="ana"))
    gone = Broker(house.store, house.clock)
    gone.ledger._process = replace(gone.process, id="gone", born="before")
    await gone.claim(request.id)
    await house.noted(request)  # an edit on its way would count as one that takes an hour, and be tried again later
    house.clock.advance(timedelta(hours=1))
    await house.becomes(request, State.UNKNOWN)
    return request, await house.message(request, lambda one: "It happened" in one.buttons)


async def hide(house: Timed, message: Message, how: str) -> None:
    await (house.ana.delete(message) if how == "deleted" else house.ana.lock(thread_of(message)))


@pytest.mark.parametrize(
    ("how", "away"),
    [
        ("deleted", True),
        ("locked", False),
        pytest.param("deleted", False, marks=pytest.mark.nightly),
        pytest.param("locked", True, marks=pytest.mark.nightly),
    ],
)
async def test_what_nobody_knows_is_asked_anew(house: Timed, how: str, away: bool) -> None:
    async with house.running():
        request, message = await unknown(house)
        if not away:
            await hide(house, message, how)
            await told(house, request, await anew(house, request, message))
    if away:
        await hide(house, message, how)
        async with house.running():
            await told(house, request, await anew(house, request, message))


async def told(house: Timed, request: ApprovalRequest, message: Message) -> None:
    await house.ana.press(message, "It happened")
    await house.becomes(request, State.SUCCEEDED)
