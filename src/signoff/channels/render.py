"""A card as lines for a terminal: framed, coloured by meaning, never wider than the screen.

Everything a call brings along stays inside the frame, to the right of a bar it cannot reach; so a text in an
argument cannot pass for ours. Lines are folded, not cut, and a folded line is marked where it goes on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from rich.cells import cell_len, get_character_cell_size
from rich.text import Text

from signoff.core.card import Card, CardArg
from signoff.core.preview import Preview, marked_lines
from signoff.core.visible import CLOSE, OPEN

_WIDEST_NAME = 18
_NARROWEST = 24
_TAIL = 2
_MOST_MASKED = 6
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan", "": "bold", " ": ""}
_NOTE_STYLES = {"approved": "green", "denied": "red", "cancelled": "yellow"}
# A diff of one file: its name is said once, above.
_HEADING = re.compile(r"--- a/(?P<path>[^\n]+)\n\+\+\+ b/(?P=path)\n(?!(?s:.*)^--- )", re.MULTILINE)
_MARKER = re.compile(rf"{OPEN}(?P<mask>masked'* )?[^{CLOSE}]*{CLOSE}")


class Edges(NamedTuple):
    """The lines of a frame that is open to the right, so that a width we misjudge bends no border."""

    top: str
    side: str
    middle: str
    bottom: str
    bar: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a terminal can show."""

    width: int = 80
    height: int = 24
    boxes: bool = True
    """Whether frames may be drawn with box characters; on a dumb terminal with ASCII."""
    colour: bool = True
    charset: str = "utf-8"

    @property
    def edges(self) -> Edges:
        """What the frame is made of."""
        return Edges("╭─", "│ ", "├─", "╰─", "─") if self.boxes else Edges("+-", "| ", "+-", "+-", "-")

    @property
    def onward(self) -> str:
        """What marks a line that goes on from the one above. As wide as the gap it stands in."""
        return "↳ " if self.boxes else "> "

    def spelled(self, text: str) -> str:
        """A text in characters this terminal has. Where it lacks some, backslashes are doubled to stay unambiguous."""
        if _has_everything(self.charset):
            return text
        return text.replace("\\", "\\\\").encode(self.charset, "backslashreplace").decode(self.charset)

    def text(self, text: str, style: str = "") -> Text:
        """One line, styled, with the markers of hidden and masked things standing out."""
        line = Text(self.spelled(text).expandtabs(4), style=style if self.colour else "", end="")
        if self.colour and OPEN in line.plain:
            for marker in _MARKER.finditer(line.plain):
                line.stylize("magenta" if marker["mask"] else "bold black on yellow", *marker.span())
        return line


@lru_cache(maxsize=16)
def _has_everything(charset: str) -> bool:
    return charset.lower().replace("-", "").startswith("utf")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """How much of a card is drawn, and where the rest is."""

    rows: int
    """How many rows a long text may take; all it needs where 0."""
    args: int = 0
    """How many arguments are drawn; all of them where 0."""
    rest: str = "press m to see everything"
    """How to get what is left out."""


WHOLE = Cut(rows=0)


@dataclass(frozen=True, slots=True)
class Drawing:
    """A card as lines, and whether any of it was left out."""

    lines: tuple[Text, ...]
    shortened: bool = False


def draw_card(card: Card, look: Look, *, whole: bool = False, cut: Cut | None = None) -> Drawing:
    """The card, with long parts shortened as `cut` says, or to fit the screen unless it is wanted whole."""
    cut = cut or (WHOLE if whole else _to_fit(card, look))
    frame = _Frame(look, cut.rest)
    frame.rule(look.edges.top, "that answer was not accepted" if card.problem else f"may {card.tool} run?")
    frame.fields([("LOOSENED", text, "bold yellow") for text in card.loosened])
    if not card.title.startswith(f"{card.tool}("):  # else it only repeats the arguments
        frame.text(card.title, "bold")
    frame.text(card.chain + (f"  (from {card.toolset})" if card.toolset else ""), "cyan")
    frame.fields(_facts(card))
    _draw_args(frame, card.args, cut)
    if card.details:
        frame.rule(look.edges.middle, "what the tool says")
        frame.fields([(one.name, one.text, "") for one in card.details], cut.rows)
    if card.preview is not None:
        _draw_preview(frame, card.preview, cut.rows)
    _draw_context(frame, card)
    _draw_notes(frame, card, whole=cut is WHOLE)
    separator = " · " if look.boxes else ", "
    frame.rule(look.edges.bottom, f"request {card.request_id}{separator}sha256 {card.digest[:12]}", "dim")
    return Drawing(tuple(frame.lines), frame.shortened)


def draw_list(cards: Sequence[Card], notes: Sequence[str], look: Look) -> Drawing:
    """Several cards, one line each, numbered; `notes` say how each stands."""
    frame = _Frame(look)
    waiting = sum(note not in _NOTE_STYLES for note in notes)
    frame.rule(
        look.edges.top, f"{f'{waiting} of ' if waiting < len(cards) else ''}{len(cards)} calls wait for an answer"
    )
    # All are of one run, as a rule: what was loosened for it is said once.
    loosened = dict.fromkeys(one for card in cards for one in card.loosened)
    frame.fields([("LOOSENED", one, "bold yellow") for one in loosened])
    number = len(str(len(cards)))
    for index, (card, note) in enumerate(zip(cards, notes, strict=True), 1):
        room = look.width - number - cell_len(note) - 6
        title = card.title if card.title.startswith(card.tool) else f"{card.tool}: {card.title}"
        line = look.text(f"{index:>{number}}  ", "bold cyan")
        shown = clipped(look.text(title), room)
        shown.append(" " * (room - shown.cell_len + 2))
        line.append_text(shown)
        line.append_text(look.text(note, _NOTE_STYLES.get(note, "dim")))
        line.rstrip()
        frame.add(line)
    frame.rule(look.edges.bottom)
    return Drawing(tuple(frame.lines))


def draw_diff(preview: Preview, look: Look, title: str) -> Drawing:
    """A difference in a frame of its own, whole."""
    frame = _Frame(look)
    frame.rule(look.edges.top, title)
    frame.diff(preview.text, limit=0)
    frame.rule(look.edges.bottom)
    return Drawing(tuple(frame.lines))


def draw_facts(facts: Iterable[tuple[str, str]], look: Look, title: str) -> Drawing:
    """Named texts in a frame, whole."""
    frame = _Frame(look)
    frame.rule(look.edges.top, title)
    frame.fields([(name, text, "") for name, text in facts])
    frame.rule(look.edges.bottom)
    return Drawing(tuple(frame.lines))


def _facts(card: Card) -> list[tuple[str, str, str]]:
    why = f"{card.why} (rule {card.rule})" if card.rule and card.why else card.why or card.rule
    facts = [
        ("problem", card.problem, "bold red"),
        ("again", card.changed, "yellow"),
        ("why", why, ""),
        ("earlier", card.answers, ""),
        ("note", card.note, ""),
    ]
    facts += [("error", error, "yellow") for error in card.errors]
    facts += [("message", card.message, "bold"), ("needs", card.needs, ""), ("until", card.until, "")]
    return [fact for fact in facts if fact[1]]


def _to_fit(card: Card, look: Look) -> Cut:
    """So many rows for a long text that the whole card about fits the screen."""
    rows = max(10, look.height - 12)
    blocks: Iterable[CardArg | Preview] = (*card.args, *card.details, *([card.preview] if card.preview else ()))
    long = sum(block.text.count("\n") >= 4 or len(block.text) > 4 * look.width for block in blocks)
    return Cut(rows=max(_TAIL + 4, rows // max(1, long)), args=max(12, look.height - 8))


def _draw_args(frame: _Frame, args: Sequence[CardArg], cut: Cut) -> None:
    shown = args[: cut.args - 1] if cut.args and len(args) > cut.args else args
    frame.rule(
        frame.look.edges.middle, f"{len(args)} arguments" if len(args) > 1 else "argument" if args else "no arguments"
    )
    frame.fields([(arg.name, arg.text, "") for arg in shown], cut.rows)
    if len(shown) < len(args):
        frame.left_out(f"{len(args) - len(shown):,} more arguments")


def _draw_preview(frame: _Frame, preview: Preview, limit: int) -> None:
    if preview.kind == "text":
        frame.rule(frame.look.edges.middle, "what it would do")
        frame.fields([("", preview.text, "")], limit)
        return
    heading = _HEADING.match(preview.text)
    where = f" in {heading['path']}" if heading and len(heading["path"]) < frame.look.width // 2 else ""
    counts = f"+{preview.added} -{preview.removed}"
    frame.rule(
        frame.look.edges.middle, f"what would change{where}: {counts}" if preview.text else "nothing would change"
    )
    frame.diff(preview.text[heading.end() :] if heading and where else preview.text, limit)


def _draw_context(frame: _Frame, card: Card) -> None:
    """How the run came to the call. What the model says is quoted: it is a claim."""
    facts = [("task", card.task, ""), ("model says", f"“{card.claim}”" if card.claim else "", "")]
    facts += [("before", past, "") for past in card.recent]
    if told := [fact for fact in facts if fact[1]]:
        frame.rule(frame.look.edges.middle, "how it came to this")
        frame.fields(told)


def _draw_notes(frame: _Frame, card: Card, *, whole: bool) -> None:
    if not card.masked and not card.warnings:
        return
    most = len(card.masked) if whole else _MOST_MASKED
    masked = [("masked", text, "") for text in card.masked[:most]]
    if len(card.masked) > most:
        masked.append(("masked", f"and {len(card.masked) - most:,} more", ""))
    frame.rule(frame.look.edges.middle, "look twice" if card.warnings else "masked")
    frame.fields([*(("warning", text, "yellow") for text in card.warnings), *masked])


_Row = tuple[str, Text | None]
"""The gap before a row and the row; no row where something is left out."""


@dataclass(slots=True)
class _Frame:
    look: Look
    rest: str = ""
    """How to get what is left out."""
    lines: list[Text] = field(default_factory=list[Text])
    shortened: bool = False

    def rule(self, edge: str, title: str = "", style: str = "bold") -> None:
        """A horizontal line with words in it."""
        line = self.look.text(edge, "dim")
        if title:
            line.append_text(clipped(self.look.text(f" {title} ", style), self.look.width - 4))
        line.append_text(self.look.text(self.look.edges.bar * max(0, self.look.width - line.cell_len), "dim"))
        self.lines.append(line)

    def add(self, line: Text) -> None:
        """A line inside the frame."""
        row = self.look.text(self.look.edges.side, "dim")
        row.append_text(line)
        self.lines.append(row)

    def text(self, text: str, style: str = "") -> None:
        """A text of one line across the frame."""
        if text:
            self._flush_left(self._rows([self.look.text(text, style)], self.look.width - 4))

    def fields(self, fields: Sequence[tuple[str, str, str]], limit: int = 0) -> None:
        """Named texts, their names in a column."""
        column = min(_WIDEST_NAME, max((cell_len(name) for name, _, _ in fields), default=0))
        column = 0 if self.look.width - column < _NARROWEST else column
        for name, text, style in fields:
            if cell_len(self.look.spelled(name)) > column:
                self.text(name, "bold")
                self._block("", text, style, column=0, limit=limit)
            else:
                self._block(name, text, style, column=column, limit=limit)

    def diff(self, text: str, limit: int) -> None:
        """A unified diff, coloured by line."""
        lines = [self.look.text(line, _DIFF_STYLES[mark]) for mark, line in marked_lines(text)] if text else []
        self._flush_left(self._laid_out(lines, self.look.width - 4, limit), text)

    def left_out(self, what: str) -> None:
        """Say that something is not on the screen."""
        self.shortened = True
        self.text(f"… {what}: {self.rest}", "bold yellow")

    def _flush_left(self, rows: Sequence[_Row], text: str = "") -> None:
        for gap, row in rows:
            if row is None:
                self.left_out(_missing(text, rows))
                continue
            line = self.look.text(gap, "dim")
            line.append_text(row)
            self.add(line)

    def _block(self, name: str, text: str, style: str, *, column: int, limit: int) -> None:
        width = self.look.width - column - 4
        if limit and len(text) > 2 * limit * width:
            # Only the ends of a huge text will be shown: the middle need not be laid out.
            first, last = (self._lines(part, style) for part in (text[: limit * width], text[-_TAIL * width :]))
            rows = self._around_gap(first, last, width, limit, goes_on=text[-_TAIL * width - 1] != "\n")
        else:
            rows = self._laid_out(self._lines(text, style), width, limit)
        look = self.look
        head = look.text("")
        head.append_text(look.text(look.edges.side, "dim"))
        head.append_text(look.text(f"{name}{' ' * (column - cell_len(look.spelled(name)))}  ", "bold"))
        below = {gap: look.text("") for gap in ("", look.onward)}
        for gap, start in below.items():
            start.append_text(look.text(f"{look.edges.side}{' ' * column}{gap or '  '}", "dim"))
        for gap, row in rows:
            if row is None:
                self.left_out(_missing(text, rows))
                continue
            line = head or below[gap].copy()
            line.append_text(row)
            self.lines.append(line)
            head = None

    def _lines(self, text: str, style: str) -> list[Text]:
        return [self.look.text(line, style) for line in text.split("\n")]

    def _laid_out(self, lines: Sequence[Text], width: int, limit: int) -> list[_Row]:
        """Lines folded into rows: all of them, or the first and the last around a gap."""
        if limit and len(lines) > limit:
            return self._around_gap(lines[:limit], lines[-_TAIL:], width, limit)
        rows = self._rows(lines, width)
        return self._around_gap(lines, lines, width, limit) if limit and len(rows) > limit else rows

    def _around_gap(
        self, first: Sequence[Text], last: Sequence[Text], width: int, limit: int, *, goes_on: bool = False
    ) -> list[_Row]:
        """The first rows and the last. `goes_on`: whether the last lines begin in the middle of one."""
        end = self._rows(last, width)
        if goes_on:
            end[0] = (self.look.onward, end[0][1])
        return [*self._rows(first, width)[: limit - _TAIL - 1], ("", None), *end[-_TAIL:]]

    def _rows(self, lines: Iterable[Text], width: int) -> list[_Row]:
        """Lines in pieces, every piece but the first of its line marked as going on."""
        onward = self.look.onward
        return [(onward if index else "", piece) for line in lines for index, piece in enumerate(folded(line, width))]


def _missing(text: str, rows: Sequence[_Row]) -> str:
    """How much of a text is not among the rows."""
    shown = [(gap, row.plain) for gap, row in rows if row is not None]
    lines = text.count("\n") + 1 - sum(not gap for gap, _ in shown)
    if lines < 2:
        return f"{len(text) - sum(len(plain) for _, plain in shown):,} more characters"
    return f"{lines:,} more lines ({_size(len(text.encode()) - sum(len(plain.encode()) for _, plain in shown))})"


def _size(count: int) -> str:
    for unit, per in (("MB", 1_000_000), ("kB", 1_000)):
        if count >= per:
            return f"{count / per:.1f} {unit}"
    return f"{max(1, count):,} bytes"


def folded(line: Text, width: int) -> list[Text]:
    """A line in pieces no wider than `width`. Nothing is dropped, blanks included."""
    offsets = _offsets(line.plain, max(1, width))
    return list(line.divide(offsets)) if offsets else [line]


def _offsets(text: str, width: int) -> list[int]:
    """Where to fold: after a blank where one is near, else where the screen ends."""
    if len(text) <= width // 2 or (text.isascii() and len(text) <= width):
        return []
    offsets: list[int] = []
    start = used = blank = 0
    for index, char in enumerate(text):
        size = get_character_cell_size(char)
        if used + size > width:
            start = blank if blank > start + width // 2 else index
            offsets.append(start)
            used = cell_len(text[start:index])
        used += size
        if char == " ":
            blank = index + 1
    return offsets


def clipped(line: Text, width: int) -> Text:
    """A line cut to `width`: for lists, headings and notes, where nothing is decided."""
    if line.cell_len > width:
        line.truncate(max(1, width), overflow="ellipsis")
    return line
