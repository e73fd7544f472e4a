"""Attempts to leave somebody asleep whose answer is there, or to lose a run while a run inside it asks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from tests.attacks.kept import Place, Silent, falls_asleep, gated, soon, turns

import signoff.broker.watch as watching
from signoff import Signoff, resume
from signoff.core.run import RunState
from signoff.errors import StoreError
from signoff.testing import ScriptedApprover

ASK = [{"ask": "pay"}, {"allow": "blocks"}, {"allow": "delegate"}]
PAY = turns(("pay", {"n": 1}))


def pay(n: int) -> str:
    return f"paid {n}"


async def test_a_look_that_fails_loses_no_answer(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "AGAIN", 0.01)
    signoff = place.gate(ASK, wait="inline", approver=Silent())
    asleep = falls_asleep(signoff.broker)
    waits = asyncio.create_task(gated(signoff, PAY, pay).run("go"))
    await soon(asleep.wait())
    real, is_broken, failed = signoff.broker.store.read, True, asyncio.Event()

    async def read(work: Callable[[Any], Any], *, own: bool = True) -> Any:
        if is_broken and work.__name__ == "changes":
            failed.set()
            raise StoreError("too many open files, for a moment")
        return await real(work, own=own)

    signoff.broker.store.read = read  # type: ignore[method-assign]
    await place.answer()
    failed.clear()
    await soon(failed.wait())
    is_broken = False
    assert (await soon(waits)).output == "paid 1"


async def test_a_loop_that_is_blocked_keeps_nobody_in_another_asleep(place: Place) -> None:
    signoff = place.gate(ASK, wait="inline", approver=Silent())
    entered, go_on, here = asyncio.Event(), threading.Event(), asyncio.get_running_loop()

    async def blocks() -> str:
        here.call_soon_threadsafe(entered.set)
        assert go_on.wait(30)
        return "done"

    def elsewhere() -> None:
        asyncio.run(gated(signoff, turns(("blocks", {})), blocks).run("go"))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    try:
        await soon(entered.wait())
        asleep = falls_asleep(signoff.broker)
        waits = asyncio.create_task(gated(signoff, PAY, pay).run("go"))
        await soon(asleep.wait())
        await place.answer()
        assert (await soon(waits)).output == "paid 1"
        assert thread.is_alive(), "the other is still blocked"
    finally:
        go_on.set()
        thread.join()


async def test_an_outer_run_is_kept_as_soon_as_a_run_inside_it_asks(place: Place) -> None:
    def agent(signoff: Signoff) -> Any:
        inner = gated(signoff, PAY, paid, name="inner")

        async def delegate() -> str:
            return str((await inner.run("x")).output)

        return gated(signoff, turns(("delegate", {})), delegate, name="outer")

    counted: list[int] = []

    def paid(n: int) -> str:
        counted.append(n)
        return f"paid {n}"

    paid.__name__ = "pay"
    dies = place.gate(ASK, dies=True, wait="inline", approver=Silent())
    asleep = falls_asleep(dies.broker)
    waits = asyncio.create_task(agent(dies).run("go"))
    await soon(asleep.wait())
    there = place.broker()
    [request] = await there.pending()
    [status] = await there.runs.list()
    assert status.run.id == request.run
    assert status.run.prompt == "go" and status.run.rest

    other = place.gate(ASK, wait="inline", approver=ScriptedApprover(["approve"]))
    result = await resume(agent(other), request.run)
    assert result.output == "paid 1"
    assert counted == [1]
    assert (await there.runs.get(request.run)).state is RunState.DONE
    assert await there.inbox() == [], "what the process that is gone had asked is withdrawn"
    waits.cancel()
    await asyncio.gather(waits, return_exceptions=True)
    await dies.broker.store.flush()
    assert (await there.runs.get(request.run)).state is RunState.DONE
