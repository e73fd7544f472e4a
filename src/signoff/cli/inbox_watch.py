"""`signoff inbox --watch`: the inbox on the screen, or as lines of JSON, until interrupted."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from shutil import get_terminal_size
from time import monotonic

import click

from signoff.cli.inbox_page import lines
from signoff.cli.terminal_text import as_json as json_line
from signoff.cli.terminal_text import clip, now
from signoff.core.visible_text import visible
from signoff.errors import StoreError
from signoff.reports.inbox_report import Page, as_data

SWEEP = 5.0
"""Seconds between two reads if nothing changes, to notice deadlines."""
LOOK = 2.0
"""Seconds between two polls of what cannot report changes."""
REDRAW = 1.0
"""Seconds between two redraws for the clock: `4 min ago` becomes `5 min ago`."""

_FOOTER = "signoff show ID · signoff approve ID · signoff deny ID · Ctrl-C leaves"
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l\x1b[?7l", "\x1b[?7h\x1b[?25h\x1b[?1049l"
"""Switch to the terminal's alternate screen, without cursor and line wrapping; and back."""
_HOME, _REST = "\x1b[H", "\x1b[J"


async def stay(
    look: Callable[[], Awaitable[Page]],
    watch: Callable[[Callable[[], None]], Callable[[], None]],
    *,
    as_json: bool,
    mine: bool,
) -> None:
    """Show the inbox, and again after every change, until interrupted."""
    loop, changed = asyncio.get_running_loop(), asyncio.Event()

    def tick() -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(changed.set)

    stop = watch(tick)
    output = JsonLines() if as_json else WatchScreen(mine=mine)
    try:
        with output.shown():
            while True:
                changed.clear()
                output.show(await _looked(look))
                due = monotonic() + SWEEP
                while not changed.is_set() and monotonic() < due:
                    await _wait(changed, min(REDRAW, max(0.0, due - monotonic())))
                    output.tick()
    except asyncio.CancelledError:
        pass  # Ctrl-C quits
    finally:
        stop()


def ticking(tick: Callable[[], None]) -> Callable[[], None]:
    """Poll what cannot report changes: call `tick` every `LOOK` seconds. Returns a function that stops it."""
    loop = asyncio.get_running_loop()
    waits: list[asyncio.TimerHandle] = []

    def again() -> None:
        tick()
        waits[:] = [loop.call_later(LOOK, again)]

    waits.append(loop.call_later(LOOK, again))
    return lambda: waits[0].cancel()


async def _looked(look: Callable[[], Awaitable[Page]]) -> Page | StoreError:
    try:
        return await look()
    except StoreError as error:
        return error


async def _wait(changed: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        await asyncio.wait_for(changed.wait(), seconds)


class JsonLines:
    """Prints one JSON object per line, whenever it differs from the last one."""

    def __init__(self) -> None:
        self._last = ""

    @contextmanager
    def shown(self) -> Generator[None]:
        yield

    def show(self, seen: Page | StoreError) -> None:
        line = json_line({"error": str(seen)} if isinstance(seen, StoreError) else as_data(seen))
        if line != self._last:
            self._last = line
            click.echo(line)
            sys.stdout.flush()

    def tick(self) -> None:
        """Do nothing: time alone changes nothing in the JSON."""


class WatchScreen:
    """The whole screen, redrawn when it changes."""

    def __init__(self, *, mine: bool) -> None:
        self._mine = mine
        self._page: Page | None = None
        self._problem = ""
        self._drawn = ""
        self._moves = os.environ.get("TERM", "dumb") != "dumb"

    @contextmanager
    def shown(self) -> Generator[None]:
        """Switch to the alternate screen; the previous screen is restored at the end."""
        self._write(_ENTER)
        try:
            yield
        finally:
            self._write(_LEAVE)

    def show(self, seen: Page | StoreError) -> None:
        if isinstance(seen, StoreError):
            self._problem = visible(str(seen))
        else:
            self._page, self._problem = seen, ""
        self.tick()

    def tick(self) -> None:
        """Redraw the screen if its content has changed."""
        size = get_terminal_size()
        body = list(lines(self._page, now(), size.columns, mine=self._mine)) if self._page is not None else []
        if self._problem:
            told = f"cannot read the store, retrying: {self._problem}"
            body = [click.style(clip(told, size.columns), fg="red"), "", *body]
        room = max(1, size.lines - 2)
        if len(body) > room:
            body = [*body[: room - 1], click.style("… the rest does not fit on this screen", dim=True)]
        footer = click.style(clip(_FOOTER, size.columns), dim=True)
        self._draw([*body, "", footer])

    def _draw(self, rows: list[str]) -> None:
        if not self._moves:
            text = "\n".join(click.unstyle(row) for row in rows[:-2]) + "\n\n"
        else:
            text = _HOME + "\x1b[K\r\n".join(rows) + "\x1b[K" + _REST
        if text != self._drawn:
            self._drawn = text
            sys.stdout.write(text)
            sys.stdout.flush()

    def _write(self, sequence: str) -> None:
        if self._moves:
            sys.stdout.write(sequence)
            sys.stdout.flush()
