"""Approved calls beside a run that pauses: whoever waits for them may be stopped, and does not wait for ever."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from signoff.gate.nesting import PATIENCE, Neighbours
from signoff.testing import FakeClock


async def turn() -> None:
    """Let every task come as far as it can without time passing."""
    for _ in range(10):
        await asyncio.sleep(0)


async def test_whoever_stops_waiting_leaves_nothing_behind_and_wakes_nobody() -> None:
    clock, mine = FakeClock(), asyncio.all_tasks()
    beside = Neighbours(clock)
    with beside.running():
        with beside.running():
            stopped, first, second = (asyncio.ensure_future(beside.quiet()) for _ in range(3))
            await turn()
            stopped.cancel()
            await turn()
            assert stopped.cancelled()
            assert len(beside._waiting) == 2, "of the one that was stopped nothing is left"
            assert len(asyncio.all_tasks() - mine) == 4, "two that wait, and how long each does"
        await turn()
        assert not first.done() and not second.done(), "one is running still"
        late = asyncio.ensure_future(beside.quiet())
        await turn()
        late.cancel()  # and no turn: it is stopped in the moment in which the call ends
    await turn()
    assert late.cancelled() and first.done() and second.done()
    await asyncio.gather(first, second)

    with beside.running():
        stopped, patient = asyncio.ensure_future(beside.quiet()), asyncio.ensure_future(beside.quiet())
        await turn()
        stopped.cancel()
        clock.advance(PATIENCE - timedelta(seconds=1))
        await turn()
        assert stopped.cancelled() and not patient.done()
        clock.advance(1)
        await turn()
        assert patient.done(), "although the call is running still"
        await patient
        assert not beside._waiting
    await turn()
    assert asyncio.all_tasks() == mine, "nothing goes on"
    await asyncio.wait_for(beside.quiet(), 1)
