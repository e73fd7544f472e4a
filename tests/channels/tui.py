"""Somebody at the full screen: the real app, real keys, and what can be read on it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.segment import Segment
from textual.pilot import Pilot
from textual.strip import Strip

from signoff.channels.tui_app import TuiApp
from signoff.channels.tui_requests import WaitingRequest, WaitingRequests
from signoff.core.card import card_for
from signoff.core.decision import ApprovalDecision
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest
from signoff.testing.office import soon

ANA = Actor(name="ana", via="tui")
START = datetime(2031, 5, 24, 12, 0, tzinfo=UTC)
PATIENCE = 60
"""Seconds for what should come to be on the screen."""


class Hand:
    """A clock that only a test moves."""

    def __init__(self) -> None:
        self.at = START

    def __call__(self) -> datetime:
        return self.at

    def move(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


class Reader:
    """Looks, then presses keys."""

    def __init__(self, pilot: Pilot[None], waiting: WaitingRequests, clock: Hand, options: dict[str, Any]) -> None:
        self.pilot = pilot
        self.waiting = waiting
        self.clock = clock
        self._options = options

    def asks(self, *requests: ApprovalRequest) -> list[WaitingRequest]:
        """Put requests on the screen, as another run would."""
        card_options = {name: self._options[name] for name in ("secrets", "keeps_always") if name in self._options}
        entries = [
            WaitingRequest(request, card_for(request, **card_options), request.opened_at or self.clock())
            for request in requests
        ]
        assert self.waiting.add(entries)
        return entries

    async def presses(self, *keys: str, looks: bool = True) -> None:
        """Press keys, each after a look at the screen; or all at once."""
        for key in keys:
            if looks:
                await self.settles()
                self.clock.move(1)
            await self.pilot.press(key)
        await self.settles()

    async def types(self, text: str) -> None:
        await self.pilot.press(*("space" if char == " " else char for char in text))
        await self.settles()

    async def settles(self) -> None:
        """Wait until everything that happened is drawn, and what drawing it brought about as well."""
        await soon(self._settled, lambda: f"it is drawn for ever:\n{self.screen}", patience=PATIENCE)

    async def _settled(self) -> bool:
        """Draw at once what Textual would draw within a sixtieth of a second; whether nothing is left to be drawn."""
        for _ in range(10):
            await _idle()
            if not self._is_dirty:
                return True
            app = self.pilot.app
            with app._context():
                app.screen._on_timer_update()
        return False

    @property
    def _is_dirty(self) -> bool:
        """Whether something has to be drawn yet, or another size is to be taken up: both wait for a moment."""
        app = self.pilot.app
        if not app.is_running:
            return False
        screen = app.screen
        asked = (screen._layout_required, screen._scroll_required, screen._repaint_required, screen._dirty_widgets)
        return any(asked) or bool(screen._callbacks) or app._resize_event is not None

    async def sees(self, text: str) -> None:
        await self.until(lambda: text in self.flat, f"{text!r} never appeared")

    async def until(self, holds: Callable[[], bool], otherwise: str = "it never came to that") -> None:
        async def held() -> bool:
            await self._settled()
            return holds()

        await soon(held, lambda: f"{otherwise}:\n{self.screen}", patience=PATIENCE)

    @property
    def lines(self) -> list[str]:
        """What is on the screen, row by row. A sheet covers what is below it."""
        app = self.pilot.app
        if not app.is_running:
            return []
        return [strip.text.rstrip() for strip in app.screen._compositor.render_strips()]

    @property
    def screen(self) -> str:
        return "\n".join(self.lines)

    @property
    def flat(self) -> str:
        """What can be read on it, part by part, without frames and folds. A sheet is all that is read."""
        app = self.pilot.app
        if not app.is_running:
            return ""
        parts = app.screen.query("#box") or app.screen.query("#head, #list, #card, #said, #keys")
        lines = self.lines
        read = "\n".join(
            cut(line, part.region.x, part.region.right)
            for part in parts
            for line in lines[part.region.y : part.region.bottom]
        )
        return " ".join(read.replace("│", " ").replace("↳", " ").split())

    @property
    def is_open(self) -> bool:
        return not self.waiting.is_closed


@asynccontextmanager
async def reading(
    *requests: ApprovalRequest, size: tuple[int, int] = (80, 24), **options: Any
) -> AsyncIterator[tuple[Reader, list[WaitingRequest]]]:
    """Somebody who reads requests on a screen of that size."""
    waiting, clock = WaitingRequests(), Hand()
    given = {name: options[name] for name in ("secrets", "draft_rules") if name in options}
    app = TuiApp(waiting, ANA, clock=clock, **given)
    reader = Reader(None, waiting, clock, options)  # type: ignore[arg-type]
    entries = reader.asks(*requests)
    async with piloted(app, size) as pilot:
        reader.pilot = pilot
        await reader.settles()
        yield reader, entries


@asynccontextmanager
async def piloted(app: TuiApp, size: tuple[int, int]) -> AsyncIterator[Pilot[None]]:
    """The app, running without a terminal."""
    with waiting_for_the_loop():
        async with app.run_test(size=size) as pilot:
            yield pilot


@contextmanager
def waiting_for_the_loop() -> Iterator[None]:
    """Have pilots wait until the event loop has nothing left to do.

    Textual's own wait ends when the process has used less than 1 ms of CPU in 20 ms, or after a second: three times
    for each key. A thread at work anywhere in this process, such as one that watches a store, makes it the second.
    """
    with pytest.MonkeyPatch.context() as patch:
        for module in ("textual.app", "textual.pilot"):
            patch.setattr(f"{module}.wait_for_idle", _idle)
        yield


_idlers: Counter[asyncio.AbstractEventLoop] = Counter()


async def _idle(*_: float) -> None:
    """Let everything run that can run now. What waits for a moment or for another thread is not waited for."""
    loop = asyncio.get_running_loop()
    ready: Any = getattr(loop, "_ready")  # noqa: B009 - asyncio does not tell it otherwise
    _idlers[loop] += 1
    try:
        for _ in range(10_000):
            await asyncio.sleep(0)
            if len(ready) < _idlers[loop]:  # others who wait here are always ready
                return
    finally:
        _idlers[loop] -= 1
        if not _idlers[loop]:
            del _idlers[loop]
    raise AssertionError(f"something in the loop never rests: {list(ready)}")


def cut(line: str, start: int, end: int) -> str:
    """Some columns of a line."""
    return Strip([Segment(line)]).crop(start, end).text


def outcome(entry: WaitingRequest) -> ApprovalDecision | None:
    """What became of a request; it has to be settled."""
    return entry.outcome.result(timeout=0)
