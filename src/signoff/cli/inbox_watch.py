"""`signoff inbox --watch`: the inbox on the screen, where a key opens a card to answer, or as lines of JSON."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import termios
import tty
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from shutil import get_terminal_size
from time import monotonic
from typing import TYPE_CHECKING, ClassVar

import click

from signoff.channels.keyboard import Keyboard
from signoff.cli.inbox_page import CHOSEN, lines
from signoff.cli.terminal_text import as_json as json_line
from signoff.cli.terminal_text import clip, fold, now
from signoff.core.visible_text import visible
from signoff.errors import StoreError
from signoff.store_changes import Watch, changes

if TYPE_CHECKING:
    from signoff.views.inbox_view import InboxFilter, RequestPage, RequestRow

SWEEP = 5.0
"""Seconds between two reads if nothing changes, to notice deadlines."""
LOOK = 2.0
"""Seconds between two polls of what cannot report changes."""
REDRAW = 1.0
"""Seconds between two redraws for the clock: `4 min ago` becomes `5 min ago`."""

_KEYS = "↑ ↓ choose · Enter opens the card, where you answer · q quits"
_NO_KEYS = "signoff show ID · signoff approve ID · signoff deny ID · Ctrl-C quits"
_BELL = "\a"
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l\x1b[?7l", "\x1b[?7h\x1b[?25h\x1b[?1049l"
"""Switch to the terminal's alternate screen, without cursor and line wrapping; and back."""
_HOME, _REST = "\x1b[H", "\x1b[J"


async def stay(
    look: Callable[[], Awaitable[RequestPage]],
    watch: Watch,
    *,
    as_json: bool,
    of: InboxFilter | None = None,
    answer: Callable[[RequestRow], Awaitable[str]] | None = None,
) -> None:
    """Show the inbox, and again after every change, until the person leaves.

    `answer` asks the person about a request, on the screen that was there before, and returns what came of it.
    """
    try:
        with changes(watch) as changed:
            keys = KeyPresses(changed.set) if answer is not None and not as_json else None
            output = JsonLines() if as_json else WatchScreen(of=of, has_keys=keys is not None and keys.can_read)
            while True:
                opened: RequestRow | None = None
                with output.shown(), keys.read() if keys is not None else nullcontext():
                    while opened is None:
                        changed.clear()
                        output.show(await _looked(look))
                        due = monotonic() + SWEEP
                        while not changed.is_set() and monotonic() < due:
                            await _wait(changed, min(REDRAW, max(0.0, due - monotonic())))
                            output.tick()
                        for key in keys.taken() if keys is not None else ():
                            if key == "q":
                                return
                            opened = opened or output.press(key)
                assert answer is not None, "without it, no key is read"
                output.say(await answer(opened))
    except asyncio.CancelledError:
        pass  # Ctrl-C quits


def ticking(tick: Callable[[], None]) -> Callable[[], None]:
    """Poll what cannot report changes: call `tick` every `LOOK` seconds. Returns a function that stops it."""
    loop = asyncio.get_running_loop()
    waits: list[asyncio.TimerHandle] = []

    def again() -> None:
        tick()
        waits[:] = [loop.call_later(LOOK, again)]

    waits.append(loop.call_later(LOOK, again))
    return lambda: waits[0].cancel()


async def _looked(look: Callable[[], Awaitable[RequestPage]]) -> RequestPage | StoreError:
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

    def show(self, seen: RequestPage | StoreError) -> None:
        line = json_line({"error": str(seen)} if isinstance(seen, StoreError) else seen)
        if line != self._last:
            self._last = line
            click.echo(line)
            sys.stdout.flush()

    def tick(self) -> None:
        """Do nothing: time alone changes nothing in the JSON."""

    def press(self, key: str) -> None:
        """Do nothing: programs press no keys."""

    def say(self, text: str) -> None:
        """Do nothing: nothing is answered here."""


class KeyPresses:
    """The keys that are pressed at the terminal, while they are read."""

    _NAMES: ClassVar[Mapping[bytes, str]] = {
        **dict.fromkeys((b"\x1b[A", b"\x1bOA", b"k"), "up"),
        **dict.fromkeys((b"\x1b[B", b"\x1bOB", b"j"), "down"),
        **dict.fromkeys((b"\r", b"\n"), "enter"),
        **dict.fromkeys((b"q", b"\x04"), "q"),
    }
    _KEY = re.compile(rb"\x1b[\[O][0-9;]*[A-Za-z~]|.", re.DOTALL)

    def __init__(self, pressed: Callable[[], None]) -> None:
        self._pressed = pressed
        self._keys: list[str] = []
        self._keyboard = Keyboard()

    @property
    def can_read(self) -> bool:
        """Whether somebody may be typing here."""
        return self._keyboard.is_here and os.environ.get("TERM", "dumb") != "dumb"

    @contextmanager
    def read(self) -> Generator[None]:
        """Take single keys within this context, without showing them. Ctrl-C interrupts as usual."""
        fd = self._keyboard.fd()
        if fd is None or not self.can_read:
            yield
            return
        loop, before = asyncio.get_running_loop(), termios.tcgetattr(fd)
        tty.setcbreak(fd, termios.TCSADRAIN)
        termios.tcflush(fd, termios.TCIFLUSH)  # what was typed before the list was there was not about it
        loop.add_reader(fd, self._more, fd)
        try:
            yield
        finally:
            loop.remove_reader(fd)
            with suppress(termios.error):
                termios.tcsetattr(fd, termios.TCSADRAIN, before)

    def taken(self) -> Sequence[str]:
        """The keys since the last call: `up`, `down`, `enter`, `q`; others mean nothing."""
        keys, self._keys = self._keys, []
        return keys

    def _more(self, fd: int) -> None:
        try:
            typed = os.read(fd, 1024)
        except OSError:
            typed = b""
        if not typed:  # the terminal was closed
            asyncio.get_running_loop().remove_reader(fd)
            typed = b"q"
        self._keys += [name for key in self._KEY.findall(typed) if (name := self._NAMES.get(key))]
        self._pressed()


class WatchScreen:
    """The whole screen, redrawn when it changes."""

    def __init__(self, *, of: InboxFilter | None = None, has_keys: bool = False) -> None:
        self._of = of
        self._has_keys = has_keys
        self._chosen = ""
        """The id of the chosen request."""
        self._said = ""
        self._known: frozenset[str] | None = None
        """The requests that were shown before."""
        self._page: RequestPage | None = None
        self._problem = ""
        self._drawn = ""
        self._moves = os.environ.get("TERM", "dumb") != "dumb"

    @contextmanager
    def shown(self) -> Generator[None]:
        """Switch to the alternate screen; the previous screen is restored at the end."""
        self._drawn = ""
        self._write(_ENTER)
        try:
            yield
        finally:
            self._write(_LEAVE)

    def show(self, seen: RequestPage | StoreError) -> None:
        if isinstance(seen, StoreError):
            self._problem = visible(str(seen))
        else:
            self._page, self._problem = seen, ""
            ids = [one.id for one in seen.requests]
            if self._known is not None and not self._known.issuperset(ids):
                self._write(_BELL)
            self._known = frozenset(ids)
            if self._chosen not in ids:
                self._chosen = ids[0] if ids else ""
        self.tick()

    def press(self, key: str) -> RequestRow | None:
        """Do what a key says. Returns the request that the person opens."""
        items = self._page.requests if self._page is not None else ()
        at = next((at for at, one in enumerate(items) if one.id == self._chosen), None)
        if at is None:
            return None
        if key == "enter":
            return items[at]
        self._chosen = items[max(0, min(len(items) - 1, at + (1 if key == "down" else -1)))].id
        self._said = ""
        self.tick()
        return None

    def say(self, text: str) -> None:
        """Show a text below the list until the next key."""
        self._said = text

    def tick(self) -> None:
        """Redraw the screen if its content has changed."""
        size, head, body, at = get_terminal_size(), list[str](), list[str](), 0
        width = size.columns - 1  # clearing the rest of a full line would clear its last character
        chosen = self._chosen if self._has_keys else ""
        if self._problem:
            told = f"cannot read the store, retrying: {self._problem}"
            head = [click.style(clip(told, width), fg="red"), ""]
        if self._page is not None:
            body = list(lines(self._page, now(), width, of=self._of, chosen=chosen))
            at = next((at for at, line in enumerate(body) if line.startswith(CHOSEN)), 0)
        said = [click.style(line, fg="yellow") for line in fold(self._said, width)] if self._said else []
        footer = click.style(clip(_KEYS if self._has_keys else _NO_KEYS, width), dim=True)
        room = max(1, size.lines - 2 - len(head) - len(said))
        self._draw([*head, *part_of(body, room, at), "", *said, footer])

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


def part_of(body: Sequence[str], room: int, at: int) -> Sequence[str]:
    """The part of the lines that fits, with the line `at` and what belongs to it."""
    if len(body) <= room:
        return body
    rest = click.style("… more below", dim=True)
    if at + _BELONGS < room:
        return [*body[: room - 1], rest]
    start = min(at + _BELONGS - room + 2, len(body) - room + 1)
    end = [] if start + room - 1 >= len(body) else [rest]
    return [click.style("… more above", dim=True), *body[start : start + room - 1 - len(end)], *end]


_BELONGS = 4
"""Lines below the title of a chosen request that should be seen with it."""
