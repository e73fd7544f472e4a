"""The full screen, with ana before it: the real app, real keys. Only the terminal below it is left out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, ClassVar

from tests.channels.tui import Hand, Reader, piloted
from tests.contracts.channels.ui_case import NO_CONNECTION, raw_characters
from textual.widgets import TextArea

from signoff.channels.approver import ApproverChannel
from signoff.channels.tui_app import TuiApp
from signoff.channels.tui_requests import WaitingRequest, WaitingRequests
from signoff.channels.turns import Outcome
from signoff.core.card import card_for
from signoff.core.decision import ApprovalDecision
from signoff.core.notice import Asked, Notice
from signoff.core.request import ApprovalRequest
from signoff.ports import Channel
from signoff.testing import ChannelCase, Skill
from signoff.testing.office import ANA, PATIENCE, soon


class Watched(WaitingRequests):
    """What waits on the screen, and when nothing does any longer."""

    def __init__(self) -> None:
        super().__init__()
        self._loop, self.over = asyncio.get_running_loop(), asyncio.Event()

    def settle(self, entry: WaitingRequest, decision: ApprovalDecision) -> bool:
        settled = super().settle(entry, decision)
        self._look()
        return settled

    def withdraw(self, key: str, why: str) -> None:
        super().withdraw(key, why)
        self._look()

    def leave(self) -> None:
        super().leave()
        self._look()

    def _look(self) -> None:
        if self.is_closed:
            self._loop.call_soon_threadsafe(self.over.set)


class FullScreen:
    """As `TuiApprover`, with the app in the loop of the test instead of a thread and a terminal of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.clock = Hand()
        self.waiting = Watched()
        self.reader: Reader | None = None
        self.told: list[str] = []
        self.hands = asyncio.Lock()
        """Held while somebody presses keys: the screen stays until they have looked."""
        self._running: asyncio.Task[None] | None = None

    def ask(self, request: ApprovalRequest) -> Outcome:
        entry = WaitingRequest(request, card_for(request), self.clock())
        asyncio.run_coroutine_threadsafe(self._put(entry), self.loop).result(30)
        return entry.outcome

    def withdraw(self, request_id: str, why: str) -> None:
        self.waiting.withdraw(request_id, why)

    def redraw(self, request: ApprovalRequest) -> None:
        self.waiting.redraw(request, card_for)

    def say(self, text: str) -> None:
        if not self.waiting.tell(text):
            self.told.append(text)

    def close(self) -> None:
        self.waiting.leave()

    async def _put(self, entry: WaitingRequest) -> None:
        if self._running is not None and self.waiting.add([entry]):
            return
        await self.closed()
        self.waiting = Watched()
        self.waiting.add([entry])
        ready = asyncio.Event()
        self._running = asyncio.ensure_future(self._run(self.waiting, ready))
        async with asyncio.timeout(PATIENCE):  # for the screen to open
            await ready.wait()

    async def _run(self, waiting: Watched, ready: asyncio.Event) -> None:
        app = TuiApp(waiting, ANA, clock=self.clock)
        async with piloted(app, (110, 40)) as pilot:
            self.reader = Reader(pilot, waiting, self.clock, {})
            await self.reader.settles()
            ready.set()
            await waiting.over.wait()
            async with self.hands:
                self.reader = None
        self.told += [text for text, _ in waiting.told]

    async def closed(self) -> None:
        """The screen is left, as it is before the next question can be put."""
        if (running := self._running) is not None:
            await asyncio.wait_for(running, PATIENCE)
            self._running = None


class TuiCase(ChannelCase):
    lacks: ClassVar[Mapping[Skill, str]] = NO_CONNECTION

    def __init__(self) -> None:
        self.ui = FullScreen()
        self._seen: list[str] = []

    def make(self) -> Channel:
        return ApproverChannel(self.ui, name="tui")

    async def seen(self, notice: Notice) -> str:
        """What is on the screen, what was there before, and what was left behind."""
        if self.ui.reader is not None and self.ui.reader.flat not in self._seen:
            self._seen.append(self.ui.reader.flat)
        return "\n".join([*self._seen, *self._left_behind()])

    async def dangers(self, notice: Notice) -> Sequence[str]:
        return raw_characters(await self.seen(notice))

    async def told(self) -> Sequence[str]:
        return self._left_behind()

    def _left_behind(self) -> list[str]:
        now = [text for text, _ in self.ui.waiting.told] if self.ui.reader is not None else []
        return self.ui.told + now

    async def standing(self, notice: Asked) -> int:
        return sum(entry.request.id == notice.request.id for entry in self.ui.waiting.entries())

    @asynccontextmanager
    async def _before(self, notice: Asked) -> AsyncIterator[Reader]:
        """The reader, with the call on the screen."""

        async def there() -> bool:
            reader = self.ui.reader
            shown = reader.pilot.app._board._current if reader is not None else None  # type: ignore[attr-defined]
            return shown is not None and shown.request.id == notice.request.id

        if not await there():
            await soon(lambda: self.ui.reader is not None, "the screen never opens")
            assert self.ui.reader is not None
            await self.ui.reader.presses("tab")
        await soon(there, lambda: f"it is not on the screen:\n{self.ui.reader and self.ui.reader.flat}")
        async with self.ui.hands:
            assert self.ui.reader is not None
            yield self.ui.reader

    async def approve(self, notice: Asked) -> None:
        async with self._before(notice) as reader:
            await reader.presses("a")

    async def deny(self, notice: Asked, note: str = "") -> None:
        async with self._before(notice) as reader:
            await reader.presses("r" if note else "d")
            if note:
                await reader.types(note)
                await reader.presses("enter")

    async def edit(self, notice: Asked, args: Mapping[str, Any]) -> None:
        async with self._before(notice) as reader:
            await reader.presses("e")
            reader.pilot.app.screen.query_one(TextArea).text = json.dumps(args)
            await reader.presses("ctrl+s", "y")

    async def open_whole(self, notice: Asked) -> str:
        async with self._before(notice) as reader:
            await reader.presses("home")
            seen = reader.flat
            [entry] = [entry for entry in self.ui.waiting.entries() if entry.request.id == notice.request.id]
            while not entry.was_shown_whole:
                await reader.presses("space")
                seen += f"\n{reader.flat}"
            return seen


@asynccontextmanager
async def tui_case() -> AsyncIterator[TuiCase]:
    case = TuiCase()
    try:
        yield case
    finally:
        case.ui.close()
        await case.ui.closed()
