"""A process that is stopped between its claim and its tool, taken for gone, and continued: the call runs once."""

from __future__ import annotations

import asyncio
from threading import Thread
from typing import Any

import pytest
from tests.attacks.kept import ANA, PATIENCE, YES, Place, gated, paused, turns

import signoff.processes as holder
from signoff import Signoff, resume
from signoff.broker import broker as broker_module
from signoff.core.event import CallEvent
from signoff.core.request import State
from signoff.errors import RunTaken

PAY = [{"ask": "pay"}]


class StandsStill:
    """While it is told of an approval, the process does nothing, and others go on."""

    def __init__(self, meanwhile: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.meanwhile = meanwhile
        self.moved = 0.0
        real = holder.steady_seconds
        monkeypatch.setattr(broker_module, "steady_seconds", lambda: real() + self.moved)

    def __call__(self, event: CallEvent) -> None:
        if event.what == "approved" and not self.moved:
            thread = Thread(target=lambda: asyncio.run(self.meanwhile()))
            thread.start()
            thread.join(PATIENCE)
            self.moved = 60.0


async def test_what_was_given_up_and_done_elsewhere_does_not_run_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    paid: list[str] = []
    run = asked = ""

    def agent(who: str, signoff: Signoff) -> Any:
        def pay() -> str:
            paid.append(who)
            return "paid"

        return gated(signoff, turns(("pay", {})), pay)

    async def another_takes_over() -> None:
        second = agent("second", place.gate(PAY))
        await resume(second, run)
        assert (await place.broker().get(asked)).state is State.UNKNOWN
        await place.broker().tell(asked, happened=False, by=ANA)
        await resume(second, run)
        await place.answer()
        await resume(second, run)

    signoff = place.gate(PAY, dies=True, observe=StandsStill(another_takes_over, monkeypatch))
    first = agent("first", signoff)
    run = await paused(signoff, first)
    [request] = await place.answer(YES)
    asked = request.id
    with pytest.raises(RunTaken, match="marked as unknown"):
        await resume(first, run)

    assert paid == ["second"]


async def test_one_that_nobody_missed_goes_on(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    paid: list[str] = []

    async def nothing() -> None: ...

    def pay() -> str:
        paid.append("first")
        return "paid"

    signoff = place.gate(PAY, observe=StandsStill(nothing, monkeypatch))
    agent = gated(signoff, turns(("pay", {})), pay)
    run = await paused(signoff, agent)
    await place.answer(YES)
    await resume(agent, run)

    assert paid == ["first"]
