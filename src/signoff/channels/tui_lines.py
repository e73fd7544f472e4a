"""Scrolling views of prepared lines that track whether every line has been on the screen."""

# pyright: reportUnknownMemberType=false
# textual does not type which app a widget belongs to.

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.events import Click, Resize
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from signoff.channels.answer_keys import Key
from signoff.channels.render import TerminalLook, folded

NARROWEST = 20
"""In a narrower view lines are cut off, so they do not count as shown."""

Draw = Callable[[TerminalLook], Sequence[Text]]


class LineView(ScrollView):
    """Shows lines that are laid out already; they are drawn again when the width changes."""

    DEFAULT_CSS = """
    LineView { overflow-x: hidden; overflow-y: auto; scrollbar-gutter: stable; scrollbar-size: 0 1; }
    """

    def __init__(self, draw: Draw = lambda look: (), *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._draw = draw
        self._lines: Sequence[Text] = ()
        self._drawn_at = 0

    @property
    def look(self) -> TerminalLook:
        """What can be shown in this view."""
        region = self.scrollable_content_region
        return TerminalLook(width=max(NARROWEST, region.width), height=max(1, region.height))

    @property
    def rows(self) -> int:
        """The number of lines."""
        return len(self._lines)

    def show_lines(self, draw: Draw) -> None:
        """Show other lines, from the top."""
        self._draw = draw
        self.redraw()
        self.scroll_to(y=0, animate=False, force=True, immediate=True)

    def redraw(self) -> None:
        """Draw the lines again."""
        self._drawn_at = self.look.width
        self._lines = self._draw(self.look)
        self.virtual_size = Size(self.look.width, self.rows)
        self.refresh()

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the number of lines, for a view with automatic height."""
        return len(self._draw(TerminalLook(width=max(NARROWEST, width - self.scrollbar_gutter.width))))

    def on_resize(self, event: Resize) -> None:
        if self.look.width != self._drawn_at:
            self.redraw()

    def render_line(self, y: int) -> Strip:
        """Render one row of the screen."""
        row, width = y + self.scroll_offset.y, self.size.width
        if row >= self.rows:
            return Strip.blank(width, self.rich_style)
        # Only visible lines are made into strips: there may be hundreds of thousands of lines.
        line = self._lines[row]
        strip = Strip(_on_one_row(line.render(self.app.console)), line.cell_len)
        return self._styled(row, strip.crop_extend(0, width, None))

    def _styled(self, row: int, strip: Strip) -> Strip:
        return strip.apply_style(self.rich_style)


def _on_one_row(segments: Iterable[Segment]) -> list[Segment]:
    return [segment for segment in segments if segment.text and segment.text != "\n"]


class KeyLine(LineView):
    """The keys on offer, in as many rows as they need. No key is separated from its label or cut off."""

    DEFAULT_CSS = """
    KeyLine { height: auto; overflow-y: hidden; scrollbar-gutter: auto; }
    """

    def __init__(self, keys: Sequence[Key] = (), *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.show_keys(keys)

    def show_keys(self, keys: Sequence[Key], later: Collection[Key] = ()) -> None:
        """Show keys; those in `later` cannot be used yet and are dimmed."""
        self._draw = partial(_laid_out, keys, later)
        if self.is_attached:
            self.redraw()
            self.refresh(layout=True)


_BETWEEN = " · "


def _laid_out(keys: Sequence[Key], later: Collection[Key], look: TerminalLook) -> Sequence[Text]:
    rows: list[Text] = []
    for key in keys:
        piece = look.text("")
        piece.append_text(look.text(key.letter, "dim" if key in later else "bold cyan"))
        piece.append_text(look.text(f" {key.label}", "dim" if key in later else ""))
        if rows and rows[-1].cell_len + len(_BETWEEN) + piece.cell_len <= look.width:
            rows[-1].append_text(look.text(_BETWEEN, "dim")).append_text(piece)
        else:
            rows += folded(piece, look.width)
    return rows


class Paper(LineView, can_focus=True):
    """Lines to read. It tracks which of them have been on the screen."""

    class Seen(Message):
        """Every row has now been on the screen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space,pagedown,ctrl+f", "page_down", "next page", show=False),
        Binding("b,pageup,ctrl+b", "page_up", "page before", show=False),
    ]

    def __init__(self, draw: Draw = lambda look: (), *, id: str | None = None) -> None:
        super().__init__(draw, id=id)
        self._unseen: set[int] = set()
        self._whole = False

    @property
    def seen_whole(self) -> bool:
        """Whether every row has been on the screen."""
        return self._whole

    def show_lines(self, draw: Draw, *, seen_whole: bool = False) -> None:
        """Show other lines, from the top. `seen_whole`: whether they were all seen before."""
        self._whole = seen_whole
        super().show_lines(draw)

    def redraw(self) -> None:
        super().redraw()
        # A new width wraps the lines differently, so what was seen says nothing about the new rows.
        self._unseen = set() if self._whole else set(range(self.rows))

    def action_page_down(self) -> None:
        """Scroll one page without animation: a row that only scrolls by has not been shown."""
        self.scroll_to(y=self.scroll_offset.y + max(1, self.size.height - 1), animate=False)

    def action_page_up(self) -> None:
        self.scroll_to(y=self.scroll_offset.y - max(1, self.size.height - 1), animate=False)

    def action_scroll_down(self) -> None:
        self.scroll_to(y=self.scroll_offset.y + 1, animate=False)

    def action_scroll_up(self) -> None:
        self.scroll_to(y=self.scroll_offset.y - 1, animate=False)

    def action_scroll_home(self) -> None:
        self.scroll_to(y=0, animate=False)

    def action_scroll_end(self) -> None:
        self.scroll_to(y=self.max_scroll_y, animate=False)

    def next_unseen(self) -> int | None:
        """The first row that has not been on the screen, or None."""
        return min(self._unseen, default=None)

    def _styled(self, row: int, strip: Strip) -> Strip:
        self._mark(row)
        return super()._styled(row, strip)

    def _mark(self, row: int) -> None:
        # A row below a modal sheet, or cut off at the side, has not been seen.
        if self._whole or self.size.width < NARROWEST or self.screen is not self.app.screen:
            return
        self._unseen.discard(row)
        if not self._unseen:
            self._whole = True
            self.post_message(self.Seen())


class Listing(LineView):
    """Blocks of lines with one selected."""

    class Chosen(Message):
        """A block was clicked."""

        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    BLOCK = 3
    _MARK = Style(reverse=True)

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.chosen = 0

    def show_blocks(self, draw: Draw, chosen: int) -> None:
        """Show blocks of `BLOCK` lines each, and scroll to the chosen one."""
        self._draw = draw
        self.chosen = chosen
        self.redraw()
        top, height = chosen * self.BLOCK, max(1, self.size.height)
        if not self.scroll_offset.y <= top <= self.scroll_offset.y + height - self.BLOCK:
            self.scroll_to(y=max(0, top - (height - self.BLOCK) // 2), animate=False)

    def on_click(self, event: Click) -> None:
        row = event.y + self.scroll_offset.y
        if row < self.rows:
            self.post_message(self.Chosen(row // self.BLOCK))

    def _styled(self, row: int, strip: Strip) -> Strip:
        styled = super()._styled(row, strip)
        return styled.apply_style(self._MARK) if row // self.BLOCK == self.chosen else styled
