"""The full-screen approver as a whole: its own thread, several that ask at once, what it leaves behind.

The real app and real keys; only the terminal below is left out. The same at a real one is in `test_tui_terminal.py`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from io import StringIO
from typing import Any

import pytest
from rich.console import Console
from tests.channels.person import request
from tests.channels.tui import PATIENCE, Hand, Reader, waiting_for_the_loop
from tests.gate.agents import Till, agent_with, pays
from textual.app import App
from textual.pilot import Pilot

from signoff import ApprovalMemory, Signoff
from signoff.channels.tui import TuiApprover
from signoff.channels.tui_app import TuiApp
from signoff.core.decision import Ending
from signoff.errors import NobodyHere

LONG = "\n".join(f"line {number}." for number in range(60))

Person = Callable[[Reader], Awaitable[None]]


class Seat:
    """Somebody before every full screen that the approver opens."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.clock = Hand()
        self.approver = TuiApprover(clock=self.clock)
        self.left = StringIO()
        """What the approver prints once the screen is closed."""
        self.person: Person | None = None
        patch.setenv("SIGNOFF_AS", "ana")
        patch.setattr("signoff.channels.tui._has_screen", lambda: True)
        patch.setattr("signoff.channels.tui.terminal_console", lambda: Console(file=self.left, width=80))
        patch.setattr(TuiApp, "run", lambda app: self._run(app))

    def _run(self, app: TuiApp) -> None:
        async def sit(pilot: Pilot[None]) -> None:
            assert self.person is not None
            reader = Reader(pilot, app._waiting, self.clock, {})
            await reader.settles()
            await self.person(reader)

        App.run(app, headless=True, size=(80, 24), auto_pilot=sit)

    def asks(self, tools: list[str], came: list[Any], place: int) -> threading.Thread:
        """A thread that asks; what came of it goes to its place."""

        def ask() -> None:
            try:
                came[place] = self.approver.choose_all([request(tool, {"content": LONG}) for tool in tools])
            except NobodyHere as nobody:
                came[place] = str(nobody)

        thread = threading.Thread(target=ask)
        thread.start()
        return thread


@pytest.fixture
def seat(monkeypatch: pytest.MonkeyPatch) -> Iterator[Seat]:
    with waiting_for_the_loop():
        yield Seat(monkeypatch)


def both(seat: Seat, person: Callable[[Reader, Callable[[], Awaitable[None]]], Awaitable[None]]) -> list[Any]:
    """Two threads ask: one about two calls, then, when the person says so, the other about one. What came of it."""
    came: list[Any] = [None, None]
    threads: list[threading.Thread] = []

    async def sit(ana: Reader) -> None:
        async def more() -> None:
            threads.append(seat.asks(["send"], came, 1))
            await ana.sees("3 calls wait")

        await ana.sees("2 calls wait")
        await person(ana, more)

    seat.person = sit
    threads.append(seat.asks(["read", "write"], came, 0))
    while threads:
        thread = threads.pop(0)
        thread.join(PATIENCE)
        assert not thread.is_alive(), "a thread that asked never heard an answer"
    return came


async def read_and_press(ana: Reader, tool: str, key: str) -> None:
    """Read a card to its end, then press a key."""
    await ana.sees(f"may {tool} run?")
    await ana.presses("space", "space", "space")
    await ana.sees("line 59.")
    await ana.presses(key)


def test_leaving_keeps_what_was_decided_and_the_rest_open(seat: Seat) -> None:
    async def person(ana: Reader, more: Callable[[], Awaitable[None]]) -> None:
        await more()
        await read_and_press(ana, "read", "a")
        await ana.sees("may write run?")
        await ana.presses("q")

    first, second = both(seat, person)
    assert first[0].approved
    assert (first[0].by.name, first[0].by.via) == ("ana", "tui")
    assert (first[1].approved, first[1].ending) == (False, Ending.CANCELLED)  # which is no answer to a gate
    assert second == "left undecided at the terminal"
    assert "left undecided at the terminal: 2 calls" in seat.left.getvalue()


def test_questions_settled_elsewhere_close_the_screen(seat: Seat) -> None:
    async def person(ana: Reader, more: Callable[[], Awaitable[None]]) -> None:
        await more()
        for tool in ("read", "write", "send"):
            seat.approver.withdraw(f"r-{tool}", "request 1 was approved by bob at 12:00")

    first, second = both(seat, person)
    assert {decision.ending for decision in (*first, *second)} == {Ending.CANCELLED}
    assert seat.left.getvalue().count("withdrawn, request 1 was approved by bob at 12:00") == 3


@pytest.mark.parametrize("key", ["a", "d"])
async def test_several_runs_ask_at_once(seat: Seat, key: str) -> None:
    async def person(ana: Reader) -> None:
        await ana.sees("2 calls wait")
        await ana.sees("may pay run?")
        await ana.presses("a")
        await ana.sees("1 call waits")
        await ana.presses(key)

    seat.person = person
    tills = [Till(), Till()]
    gates = [Signoff([], approver=seat.approver, memory=ApprovalMemory(None)) for _ in tills]
    agents = [agent_with(gate, pays(amount), till) for gate, amount, till in zip(gates, (5, 7), tills, strict=True)]
    async with asyncio.timeout(PATIENCE):
        results = await asyncio.gather(*(agent.run("go") for agent in agents))
    assert [bool(till.paid) for till in tills].count(True) == (2 if key == "a" else 1)
    assert sum("denied" in result.output for result in results) == (0 if key == "a" else 1)
