"""Output and prompts at the terminal: print drawings and sentences, page through long ones, ask for lines."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import IO

from rich.console import Console
from rich.segment import Segments
from rich.text import Text

from signoff.channels.answer_keys import Key
from signoff.channels.keyboard import Keyboard
from signoff.channels.render import TerminalLook, clipped, folded
from signoff.core.visible_text import visible

_NARROWEST = 20
_PIECE = 1_000
_PAGE_KEYS = "Enter next, g to the end, b back"


def terminal_console() -> Console | None:
    """Return a console on standard error or output, whichever is a terminal; None if neither is."""
    for stream in (sys.stderr, sys.stdout):
        if _is_terminal(stream):
            return Console(file=stream, markup=False, emoji=False, highlight=False)
    return None


def _is_terminal(stream: IO[str] | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


class Screen:
    """One dialog at one terminal."""

    def __init__(self, console: Console, keyboard: Keyboard) -> None:
        self._console = console
        self.keyboard = keyboard

    @property
    def look(self) -> TerminalLook:
        """What the terminal can show now; its size may change at any time."""
        console = self._console
        boxes = not console.is_dumb_terminal and console.encoding.lower().startswith("utf")
        return TerminalLook(
            width=max(_NARROWEST, console.width),
            height=console.height,
            boxes=boxes,
            colour=console.color_system is not None and not console.no_color,
            charset=console.encoding,
        )

    def fd(self) -> int | None:
        """Return the file descriptor of the output, or None."""
        try:
            return self._console.file.fileno()
        except (AttributeError, OSError, ValueError):
            return None

    def show(self, lines: Iterable[Text]) -> None:
        """Print lines that are laid out already, in pieces of 1,000 lines."""
        rest, console = iter(lines), self._console
        while piece := list(islice(rest, _PIECE)):
            # As segments, which rich prints as they are, without looking for where to wrap them.
            console.print(Segments(part for line in piece for part in line.render(console, end="\n")), end="")

    def say(self, text: str, style: str = "") -> None:
        """Print a sentence, wrapped. Text from a call must be escaped already."""
        look = self.look
        self.show(line for part in text.split("\n") for line in folded(look.text(part, style), look.width))

    def note(self, text: str, style: str = "") -> None:
        """Print one line, truncated to the screen."""
        self.show([clipped(self.look.text(text, style), self.look.width)])

    def offer(self, keys: Sequence[Key]) -> None:
        """Print keys and their labels, as many to a line as fit."""
        self.show(self.key_lines(keys))

    def key_lines(self, keys: Sequence[Key]) -> list[Text]:
        """Return the lines that `offer` prints."""
        look, separator = self.look, " · " if self.look.boxes else " | "
        lines = [Text(end="")]
        for key in keys:
            item = look.text(key.letter, "bold cyan")
            item.append_text(look.text(f" {key.label}"))
            if lines[-1].plain and lines[-1].cell_len + len(separator) + item.cell_len > look.width:
                lines.append(Text(end=""))
            elif lines[-1].plain:
                lines[-1].append_text(look.text(separator, "dim"))
            lines[-1].append_text(item)
        return [piece for line in lines for piece in folded(line, look.width)]

    def rows(self, text: str) -> int:
        """Return how many rows a sentence takes."""
        look = self.look
        return sum(len(folded(look.text(part), look.width)) for part in text.split("\n"))

    def ask(self, prompt: str, moot: Callable[[], str] = lambda: "") -> str:
        """Return the line typed in answer. Input typed before the prompt is discarded. Raises a `NoLine`."""
        line = self.look.text(f"{prompt} > ", "bold")

        def show() -> None:
            self._console.print(line, end="", soft_wrap=True, markup=False, emoji=False, highlight=False)
            self._console.file.flush()

        try:
            return self.keyboard.line(show, moot)
        except BaseException:
            self.show([Text(end="")])
            raise

    def page(self, lines: Sequence[Text], moot: Callable[[], str] = lambda: "", *, below: int = 1) -> bool:
        """Show lines page by page. Returns whether all were shown; lines that were jumped over were not.

        `below` is how many rows will be printed afterwards; they must not push unread lines off the screen.
        """
        at, has_all = 0, True
        while True:
            height, left = self.look.height, len(lines) - at
            if left <= max(0, height - below):
                self.show(lines[at:])
                return has_all
            prompt = f"{{:,}} of {len(lines):,} lines: {_PAGE_KEYS}"
            rows = max(4, height - self.rows(f"{prompt.format(len(lines))} > "))
            self.show(lines[at : at + rows])
            at = min(at + rows, len(lines))
            typed = self._page_key(prompt.format(at), moot)
            if typed == "b":
                return has_all and at == len(lines)
            if typed == "g" and (jump := len(lines) - max(1, height - below)) > at:
                at, has_all = jump, False

    def _page_key(self, prompt: str, moot: Callable[[], str]) -> str:
        """Return the key typed at the end of a page: b, g, or empty for the next page. Other keys are refused."""
        while True:
            typed = self.ask(prompt, moot).strip().casefold()
            if typed in ("", "b", "back", "g", "end"):
                return {"back": "b", "end": "g"}.get(typed, typed)
            self.say(f"“{visible(typed[:40])}” is not a key here.", "yellow")
