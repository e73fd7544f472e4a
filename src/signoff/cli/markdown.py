"""Render a model's text on a terminal as it arrives: each paragraph once, as soon as it is complete.

What is written is never redrawn, so an interruption leaves the screen intact. Every row begins with a bar that nothing
else on the screen uses: a model's text cannot imitate a question, an answer or a line of progress. No letter is hidden:
links show their URL, HTML is text, and a paragraph of which rich would leave something out is written as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from io import StringIO
from typing import ClassVar

from markdown_it import MarkdownIt
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import Heading as RichHeading
from rich.markdown import Markdown as RichMarkdown
from rich.theme import Theme

from signoff.cli.safe_output import STEERS
from signoff.cli.terminal_text import cells
from signoff.core.visible_text import visible

NARROWEST = 24
_FENCE = re.compile(r" *(```+|~~~+)")
_CODE = re.compile(r" {4}")
_STYLE = re.compile(r"\x1b\[[\d;]*m")
_THEME = Theme({"markdown.code": "cyan", "markdown.link_url": "underline", "markdown.h1": "bold underline"})
_PARSER = MarkdownIt("commonmark", {"html": False}).enable("table").disable(["reference", "image", "entity", "code"])


class Markdown:
    """Renders text that arrives in pieces. The output does not depend on where the text was cut."""

    def __init__(self, width: int, *, styled: bool, bar: str) -> None:
        """`width` is that of the screen; zero: lines are never wrapped. Without `styled` the text stays as it is.

        `bar` is what every row begins with.
        """
        self._room = max(NARROWEST, width) - cells(bar) if width else 0
        self._styled = styled
        self._bar = f"\x1b[2m{bar}\x1b[0m" if styled else bar
        self._line = ""
        """The line that is not complete yet."""
        self._lines: list[str] = []
        """The complete lines of the current paragraph or code block."""
        self._fence = ""
        """The fence that closes the open code block."""
        self._blank = 0
        """Blank lines that are written only if something follows."""
        self._is_bare = True
        """Whether only blank lines came so far."""

    @property
    def pending(self) -> str:
        """What came of the current paragraph, on one line."""
        return " ".join(" ".join([*self._lines, self._line.removesuffix("\r")]).split())

    def feed(self, text: str) -> str:
        """Add text; return what to write now: whole rows."""
        *lines, self._line = (self._line + text).split("\n")
        return "".join(row for line in lines for row in self._whole(_safe(line.removesuffix("\r"))))

    def end(self) -> str:
        """End the text; return what is left to write. It ends with a line break if there was any text."""
        line, self._line = self._line, ""
        left = [*(self._whole(_safe(line)) if line else ()), *self._finished()]
        self._fence = ""
        return "".join(left)

    def _whole(self, line: str) -> Iterator[str]:
        """Add a complete line."""
        if self._fence:
            self._lines.append(line)
            if line.strip().startswith(self._fence) and not line.strip().strip(self._fence[0]):
                yield from self._finished()
                self._fence = ""
        elif not line.strip():
            yield from self._finished()
            self._blank = 1 if self._styled else self._blank + 1
        elif not self._styled:
            yield from self._written([line])
        elif found := _FENCE.match(line):
            yield from self._finished()
            self._fence, self._lines = found[1], [line]
        else:
            self._lines.append(line)

    def _finished(self) -> Iterator[str]:
        """Write the current paragraph or code block."""
        lines, self._lines = self._lines, []
        if lines:
            is_code = self._fence or _CODE.match(lines[0])
            yield from self._written(lines, None if is_code else _drawn(lines, self._room))

    def _written(self, lines: list[str], drawn: list[str] | None = None) -> Iterator[str]:
        yield from (f"{self._bar}\n" for _ in range(0 if self._is_bare else self._blank))
        self._is_bare, self._blank = False, 0
        rows = drawn if drawn is not None else (row for line in lines for row in _wrapped(line.rstrip(), self._room))
        yield from (f"{self._bar}{row}\n" for row in rows)


def _safe(line: str) -> str:
    return STEERS.sub(lambda found: visible(found[0]), line).replace("\t", "    ")


def _wrapped(line: str, room: int) -> Iterator[str]:
    """Split a line that does not fit, wherever the row ends."""
    row, used = "", 0
    for char in line:
        used += cells(char)
        if room and used > room and row:
            yield row
            row, used = "", cells(char)
        row += char
    yield row


# --- rich ---


class _Heading(RichHeading):
    """A heading at the left, as other text."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.text


class _Page(RichMarkdown):
    elements: ClassVar = {**RichMarkdown.elements, "heading_open": _Heading}

    def __init__(self, text: str) -> None:
        super().__init__("", hyperlinks=False)
        self.parsed = _PARSER.parse(text)


def _drawn(lines: Iterable[str], room: int) -> list[str] | None:
    """Return the rows of a paragraph; None if a letter of it would be missing, or a row would not fit."""
    text, out = "\n".join(lines), StringIO()
    console = Console(
        file=out,
        width=room or 10_000,
        force_terminal=True,
        color_system="standard",
        theme=_THEME,
        legacy_windows=False,
        _environ={},
    )
    console.print(_Page(text))
    rows = [row.rstrip() for row in out.getvalue().split("\n")]
    bare = [_STYLE.sub("", row).rstrip() for row in rows]
    filled = [at for at, row in enumerate(bare) if row]
    rows, bare = (part[filled[0] : filled[-1] + 1] if filled else [] for part in (rows, bare))
    shown = (char for row in bare for char in row if char.isalnum())
    if all(char in shown for char in text if char.isalnum()) and all(cells(row) <= room for row in bare if room):
        return rows
    return None
