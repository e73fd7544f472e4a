"""The four ways in which the question of an inner agent is answered, and its run gone on with."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from pydantic_ai import DeferredToolRequests
from tests.crash.fork import Child, heard
from tests.nested.cells import NOTE, Cell
from tests.nested.chain import Chain

from signoff import ApprovalDecision, resume
from signoff.broker import Broker
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest
from signoff.store.store_factory import open_store
from signoff.testing import FakeClock

ANA = Actor(name="ana", via="test")
TOO_LATE = timedelta(hours=2)
PATIENCE = 60
"""Seconds after which something that should happen at once counts as never happening."""


def tell(pipe: int) -> None:
    """Let whoever listens know."""
    os.write(pipe, b".")


class Silent:
    """An approver who is asked and never says anything: answers come from elsewhere."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self._tell = tell

    async def choose(self, request: ApprovalRequest, *, mode: Any) -> ApprovalDecision:
        self._tell()
        await asyncio.Event().wait()
        raise AssertionError("nobody sets this")


def decision(cell: Cell) -> ApprovalDecision:
    match cell.answer:
        case "edit":
            return ApprovalDecision(approved=True, edited_args={"amount": 7})
        case "deny":
            return ApprovalDecision(approved=False, note=NOTE)
        case _:
            return ApprovalDecision(approved=True)


async def answer(cell: Cell, round_: int) -> None:
    """Answer what there is to answer, from elsewhere: one question each round. Silence is time that passes."""
    store = open_store(cell.url)
    broker = Broker(store, _clock(cell, round_))
    try:
        pending = await broker.pending()
        wanted = len(cell.amounts) - round_ + 1
        assert [one.call.chain for one in pending if one.call] == [cell.chain] * wanted
        if cell.answer == "timeout":
            assert [str(one.state) for one in await broker.sweep()] == ["expired"]
        else:
            await broker.answer(pending[0].id, decision(cell), by=ANA)
    finally:
        store.close()


async def begin(cell: Cell) -> Any:
    """Run until it waits, which ends it."""
    store = open_store(cell.url)
    try:
        return (await Chain(cell, store, wait="suspend", clock=_clock(cell, 0)).outermost.run("go")).output
    finally:
        store.close()


async def go_on(cell: Cell, round_: int) -> Any:
    """Take the run up with agents that were made for this, in a process that need not know the others."""
    store = open_store(cell.url)
    try:
        chain = Chain(cell, store, wait="suspend", clock=_clock(cell, round_))
        [run] = await store.read(lambda tx: tx.runs.all(going=True))
        return (await resume(chain.outermost, run.id)).output
    finally:
        store.close()


def _clock(cell: Cell, round_: int) -> FakeClock:
    clock = FakeClock()
    if round_ and cell.answer == "timeout":
        clock.advance(TOO_LATE)
    return clock


def _said(output: Any) -> Any:
    return None if isinstance(output, DeferredToolRequests) else output


# --- the ways: each returns what the run answered ---


async def inline(cell: Cell) -> Any:
    """The run waits in place, and goes on when somebody answers elsewhere."""
    store, asked, clock = open_store(cell.url), asyncio.Event(), FakeClock()
    try:
        chain = Chain(cell, store, wait="inline", approver=Silent(asked.set), clock=clock)
        run = asyncio.ensure_future(chain.outermost.run("go"))
        waits = asyncio.ensure_future(asked.wait())
        await asyncio.wait([run, waits], timeout=PATIENCE, return_when=asyncio.FIRST_COMPLETED)
        assert run.done() or waits.done(), f"after {PATIENCE} s the run has neither asked nor ended"
        waits.cancel()
        assert not run.done(), run.result()
        for round_ in range(1, len(cell.amounts) + 1):
            assert not run.done() and not cell.effects.lines(tool="pay")
            if cell.answer == "timeout":
                clock.advance(TOO_LATE)
            else:
                await answer(cell, round_)
        return _said((await asyncio.wait_for(run, PATIENCE)).output)
    finally:
        store.close()


async def suspended(cell: Cell) -> Any:
    """The run ends, and is resumed in the same process with agents that are made anew."""
    said = _said(await begin(cell))
    for round_ in range(1, len(cell.amounts) + 1):
        assert said is None and not cell.effects.lines(tool="pay")[round_ - 1 :]
        await answer(cell, round_)
        said = _said(await go_on(cell, round_))
    return said


def restart(**cell: Any) -> Any:
    """The process that waits is killed; others answer, others go on."""
    the = Cell(**cell)
    hears, tells = os.pipe()
    first = Child(_wait_in_place, the, tells)
    os.close(tells)
    assert heard(hears, "the process asks"), "it ended before it asked"
    os.close(hears)
    os.kill(first.pid, signal.SIGKILL)
    first.wait()
    return _rounds(the)


def other_process(**cell: Any) -> Any:
    """The process that began lives on, and has nothing to do with how it goes on elsewhere."""
    the = Cell(**cell)
    (hears, tells), (stays, leaves) = os.pipe(), os.pipe()
    first = Child(_begin_and_stay, the, tells, stays, leaves)
    os.close(tells)
    assert heard(hears, "the process suspends its run"), first.wait()
    said = _rounds(the)
    os.close(hears)
    os.close(stays)
    os.close(leaves)  # now it may go
    assert first.wait() == the.chain
    return said


def _rounds(cell: Cell) -> Any:
    said: Any = None
    for round_ in range(1, len(cell.amounts) + 1):
        assert said is None and len(cell.effects.lines(tool="pay")) == round_ - 1
        # Where nobody answers, somebody may have noticed that time is up; or whoever goes on does.
        if not (cell.answer == "timeout" and cell.way == "restart"):
            Child(_answered, cell, round_).wait()
        said = Child(_gone_on, cell, round_).wait()
    return said


def _answered(cell: Cell, round_: int) -> None:
    asyncio.run(answer(cell, round_))


def _gone_on(cell: Cell, round_: int) -> Any:
    return _said(asyncio.run(go_on(cell, round_)))


def _wait_in_place(cell: Cell, tells: int) -> None:
    async def work() -> None:
        approver = Silent(lambda: tell(tells))
        chain = Chain(cell, open_store(cell.url), wait="inline", approver=approver, clock=FakeClock())
        await chain.outermost.run("go")

    asyncio.run(work())


def _begin_and_stay(cell: Cell, tells: int, stays: int, leaves: int) -> str:
    os.close(leaves)

    async def work() -> str:
        store = open_store(cell.url)
        chain = Chain(cell, store, wait="suspend", clock=FakeClock())
        output = (await chain.outermost.run("go")).output
        assert isinstance(output, DeferredToolRequests)
        [chained] = {one.call.chain for one in await chain.gate.pending() if one.call}
        tell(tells)
        heard(stays, "the others are done")
        store.close()
        return chained

    return asyncio.run(work())
