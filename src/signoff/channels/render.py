"""Draw a card as lines for a terminal: framed, coloured by meaning, never wider than the screen.

Text from the call stays inside the frame, to the right of a bar that it cannot reach, so an argument cannot spoof
signoff's own output. Long lines are wrapped, not cut, and continuation lines are marked.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from rich.cells import cell_len, get_character_cell_size
from rich.text import Text

from signoff.core.card import IRREVERSIBLE, Card, CardArg, rules_after
from signoff.core.preview import Preview, marked_lines
from signoff.core.visible_text import CLOSE, OPEN

_WIDEST_NAME = 18
_NARROWEST = 24
_TAIL = 2
_LEAST = _TAIL + 3
"""Minimum rows that are drawn of a long text."""
_WORTH = 4
"""Minimum number of rows to leave out; fewer are not worth the line that says so."""
_MOST_MASKED = 6
_DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan", "": "bold", " ": ""}
_NOTE_STYLES = {"approved": "green", "denied": "red", "cancelled": "yellow"}
# A diff of a single file: its name moves to the heading.
_HEADING = re.compile(r"--- a/(?P<path>[^\n]+)\n\+\+\+ b/(?P=path)\n(?!(?s:.*)^--- )", re.MULTILINE)
_MARKER = re.compile(rf"{OPEN}(?P<mask>masked'* )?[^{CLOSE}]*{CLOSE}")


class Edges(NamedTuple):
    """The border characters of a frame. It is open to the right, so a misjudged character width bends no border."""

    top: str
    side: str
    middle: str
    bottom: str
    bar: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminalLook:
    """What a terminal can show: size, box characters, colour, charset."""

    width: int = 80
    height: int = 24
    boxes: bool = True
    """Whether box characters can be drawn. Otherwise, as on a dumb terminal, frames are ASCII."""
    colour: bool = True
    charset: str = "utf-8"

    @property
    def edges(self) -> Edges:
        """The border characters for this terminal."""
        return Edges("╭─", "│ ", "├─", "╰─", "─") if self.boxes else Edges("+-", "| ", "+-", "+-", "-")

    @property
    def onward(self) -> str:
        """The mark of a continuation line, as wide as the gap it is put into."""
        return "↳ " if self.boxes else "> "

    def spelled(self, text: str) -> str:
        """Escape characters this terminal cannot show. Backslashes are then doubled to stay unambiguous."""
        if _has_everything(self.charset):
            return text
        return text.replace("\\", "\\\\").encode(self.charset, "backslashreplace").decode(self.charset)

    def text(self, text: str, style: str = "") -> Text:
        """Return one styled line, with the markers of hidden and masked characters highlighted."""
        line = Text(self.spelled(text).expandtabs(4), style=style if self.colour else "", end="")
        if self.colour and OPEN in line.plain:
            for marker in _MARKER.finditer(line.plain):
                line.stylize("magenta" if marker["mask"] else "bold black on yellow", *marker.span())
        return line


@lru_cache(maxsize=16)
def _has_everything(charset: str) -> bool:
    return charset.lower().replace("-", "").startswith("utf")


REST = "press m to see everything"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """How far a card is shortened."""

    rows: int
    """Maximum rows of a long text; 0 for no limit."""
    changes: int = 0
    """Maximum rows for the changed lines of a diff, if that is more than `rows`."""
    args: int = 0
    """Maximum number of arguments; 0 for no limit."""
    rest: str = REST
    """Says how to see what is left out."""
    asks: bool = True
    """Whether the call waits for an answer. Otherwise the drawing asks nothing, and says what was asked about."""


WHOLE = Cut(rows=0)


@dataclass(frozen=True, slots=True)
class Drawing:
    """A card as lines, and whether any of it was left out."""

    lines: tuple[Text, ...]
    shortened: bool = False


def draw_card(card: Card, look: TerminalLook, *, whole: bool = False, cut: Cut | None = None, room: int = 0) -> Drawing:
    """Draw the card: whole, shortened by `cut`, or shortened to fit into `room` rows if possible.

    Without `room` it is the height of the screen, less the rows for the keys.
    """
    if cut is not None or whole:
        return _drawn(card, look, cut or WHOLE)
    return _fitted(card, look, room or look.height - 4)


def top_of(drawing: Drawing, room: int, look: TerminalLook) -> Drawing:
    """Cut a drawing that is taller than `room`: its first lines, a line that says it goes on, and its last line."""
    if len(drawing.lines) <= room:
        return drawing
    frame = _Frame(look, REST)
    frame.left_out("the card continues")
    *_, last = drawing.lines
    return Drawing((*drawing.lines[: max(1, room - len(frame.lines) - 1)], *frame.lines, last), shortened=True)


def _drawn(card: Card, look: TerminalLook, cut: Cut) -> Drawing:
    frame = _Frame(look, cut.rest)
    refused = " (answer not accepted)" if card.problem else ""
    frame.rule(look.edges.top, f"may {card.tool} run?{refused}" if cut.asks else card.tool)
    frame.fields([("LOOSENED", text, "bold yellow") for text in card.loosened])
    if not card.title.startswith(f"{card.tool}("):  # otherwise the title only repeats the arguments
        frame.text(card.title, "bold")
    frame.text(card.chain + (f"  (from {card.toolset})" if card.toolset else ""), "cyan")
    frame.fields(_facts(card))
    _draw_args(frame, card, cut)
    if card.details:
        frame.rule(look.edges.middle, "what the tool says")
        frame.fields([(one.name, one.text, "") for one in card.details], cut.rows)
    if card.preview is not None:
        _draw_preview(frame, card.preview, cut)
    _draw_context(frame, card)
    _draw_comments(frame, card)
    _draw_notes(frame, card, whole=not cut.rows)
    separator = " · " if look.boxes else ", "
    frame.rule(look.edges.bottom, f"request {card.request_id}{separator}sha256 {card.digest[:12]}", "dim")
    return Drawing(tuple(frame.lines), frame.shortened)


def draw_list(cards: Sequence[Card], notes: Sequence[str], look: TerminalLook) -> Drawing:
    """Draw several cards as a numbered list, one line each; `notes` are their states."""
    frame = _Frame(look)
    waiting = sum(note not in _NOTE_STYLES for note in notes)
    frame.rule(
        look.edges.top, f"{f'{waiting} of ' if waiting < len(cards) else ''}{len(cards)} calls wait for an answer"
    )
    # Usually all are calls of one run, so loosened modes are shown once.
    loosened = dict.fromkeys(one for card in cards for one in card.loosened)
    frame.fields([("LOOSENED", one, "bold yellow") for one in loosened])
    number = len(str(len(cards)))
    for index, (card, note) in enumerate(zip(cards, notes, strict=True), 1):
        room = look.width - number - cell_len(note) - 6
        title = card.title if card.title.startswith(card.tool) else f"{card.tool}: {card.title}"
        title = f"asked again: {title}" if card.changed else title
        line = look.text(f"{index:>{number}}  ", "bold cyan")
        shown = clipped(look.text(title), room)
        shown.append(" " * (room - shown.cell_len + 2))
        line.append_text(shown)
        line.append_text(look.text(note, _NOTE_STYLES.get(note, "dim")))
        line.rstrip()
        frame.add(line)
    frame.rule(look.edges.bottom)
    return Drawing(tuple(frame.lines))


def draw_diff(preview: Preview, look: TerminalLook, title: str) -> Drawing:
    """Draw a whole diff in its own frame."""
    frame = _Frame(look)
    frame.rule(look.edges.top, title)
    frame.diff(preview.text, limit=0)
    frame.rule(look.edges.bottom)
    return Drawing(tuple(frame.lines))


def draw_facts(facts: Iterable[tuple[str, str]], look: TerminalLook, title: str) -> Drawing:
    """Draw named texts in a frame, in full."""
    frame = _Frame(look)
    frame.rule(look.edges.top, title)
    frame.fields([(name, text, "") for name, text in facts])
    frame.rule(look.edges.bottom)
    return Drawing(tuple(frame.lines))


def _facts(card: Card) -> list[tuple[str, str, str]]:
    why = " ".join(filter(None, (card.why, rules_after(card.why, card.rule)))) if card.why else card.rule
    facts = [
        ("problem", card.problem, "bold red"),
        ("again", card.changed, "yellow"),
        ("why", why, ""),
        ("earlier", card.answers, ""),
        ("note", card.note, ""),
    ]
    facts += [("in doubt", error, "yellow") for error in card.errors]
    facts += [("message", card.message, "bold"), ("careful", IRREVERSIBLE if card.irreversible else "", "bold yellow")]
    facts += [("needs", card.needs, ""), ("until", card.until, "")]
    return [fact for fact in facts if fact[1]]


def _fitted(card: Card, look: TerminalLook, room: int) -> Drawing:
    """Shorten a card to fit: first unchanged lines of a diff, then the middle of long texts, then arguments.

    If that is not enough, no argument is left out, and the drawing is taller than `room`.
    """

    def drawn(rows: int, args: int = 0) -> Drawing:
        return _drawn(card, look, Cut(rows=rows, changes=max(rows, room), args=args))

    blocks: tuple[CardArg | Preview, ...] = (*card.args, *card.details, *([card.preview] if card.preview else ()))
    # Do not lay out a huge text only to find that it does not fit.
    if sum(len(block.text) for block in blocks) <= _WORTH * room * look.width:
        whole = _drawn(card, look, WHOLE)
        if len(whole.lines) <= room:
            return whole
    smallest = drawn(_LEAST)
    if len(smallest.lines) <= room:
        return _largest(drawn, _LEAST, room, room) or smallest
    return _largest(lambda args: drawn(_LEAST, args), _WORTH, len(card.args), room) or smallest


def _largest(drawn: Callable[[int], Drawing], least: int, most: int, room: int) -> Drawing | None:
    """Binary search for the drawing with the largest number that still fits; None if none does."""
    found: Drawing | None = None
    while least <= most:
        number = (least + most) // 2
        drawing = drawn(number)
        if len(drawing.lines) <= room:
            found, least = drawing, number + 1
        else:
            most = number - 1
    return found


def _draw_args(frame: _Frame, card: Card, cut: Cut) -> None:
    args = card.args
    shown = args[: cut.args - 1] if cut.args and len(args) >= cut.args + _WORTH - 1 else args
    frame.rule(
        frame.look.edges.middle, f"{len(args)} arguments" if len(args) > 1 else "argument" if args else "no arguments"
    )
    frame.fields([_arg_field(arg, card.preview, cut) for arg in shown], cut.rows)
    if len(shown) < len(args):
        frame.left_out(f"{len(args) - len(shown):,} more arguments")


def _arg_field(arg: CardArg, preview: Preview | None, cut: Cut) -> tuple[str, str, str]:
    if preview is None or not _is_in_diff(arg.text, preview):
        return arg.name, arg.text, ""
    lines = arg.text.removesuffix(_LF).count(_LF) + 1
    return arg.name, f"all {lines:,} lines are in {_change(cut)}, below", "italic"


def _change(cut: Cut) -> str:
    return "what would change" if cut.asks else "the change"


_LF = "\n"


def _is_in_diff(text: str, preview: Preview) -> bool:
    """Whether a diff shows the whole text as the new content, so that the argument need not repeat it."""
    if preview.kind != "diff" or text.count(_LF) < _WORTH:
        return False
    new: list[str] = []
    places, ends_line, before = 0, True, ""
    for mark, line in marked_lines(preview.text):
        places += mark == "@"
        if mark in ("+", " "):
            new.append(line[1:])
            ends_line = True
        elif not mark and line.startswith("\\"):
            ends_line = ends_line and before == "-"
        before = mark
    return places == 1 and text == _LF.join(new) + (_LF if ends_line else "")


def _draw_preview(frame: _Frame, preview: Preview, cut: Cut) -> None:
    if preview.kind == "text":
        frame.rule(frame.look.edges.middle, "what it would do" if cut.asks else "what it was to do")
        frame.fields([("", preview.text, "")], cut.rows)
        return
    heading = _HEADING.match(preview.text)
    where = f" in {heading['path']}" if heading and len(heading["path"]) < frame.look.width // 2 else ""
    counts = f"+{preview.added} -{preview.removed}"
    frame.rule(
        frame.look.edges.middle,
        f"{_change(cut)}{where}: {counts}" if preview.text else "nothing would change" if cut.asks else "no change",
    )
    frame.diff(preview.text[heading.end() :] if heading and where else preview.text, cut.rows, cut.changes)


def _draw_context(frame: _Frame, card: Card) -> None:
    """Draw how the run came to the call. What the model says is quoted: it is a claim."""
    facts = [("session", card.session, ""), ("task", card.task, "")]
    facts += [("model says", f"“{card.claim}”" if card.claim else "", "")]
    facts += [("before", past, "") for past in card.recent]
    if told := [fact for fact in facts if fact[1]]:
        frame.rule(frame.look.edges.middle, "context")
        frame.fields(told)


def _draw_comments(frame: _Frame, card: Card) -> None:
    """Draw the comments. Open questions are highlighted."""
    if not card.comments:
        return
    before = f", {card.left_out:,} earlier ones left out" if card.left_out else ""
    frame.rule(frame.look.edges.middle, f"comments{before}")
    frame.fields([(one.heading, one.text, "bold yellow" if one.is_open else "") for one in card.comments])


def _draw_notes(frame: _Frame, card: Card, *, whole: bool) -> None:
    if not card.masked and not card.warnings:
        return
    most = len(card.masked) if whole else _MOST_MASKED
    # Numbered as in the masks, since one text may be masked in several places.
    name = "masked " if card.warnings else ""
    masked = [(f"{name}{number}", text, "") for number, text in enumerate(card.masked[:most], 1)]
    if len(card.masked) > most:
        masked.append((name.strip(), f"and {len(card.masked) - most:,} more", ""))
    frame.rule(frame.look.edges.middle, "look twice" if card.warnings else "masked")
    frame.fields([*(("warning", text, "yellow") for text in card.warnings), *masked])


_Row = tuple[str, Text | None]
"""The gap before a row, and the row; None in place of rows that are left out."""


@dataclass(slots=True)
class _Frame:
    look: TerminalLook
    rest: str = ""
    """Says how to see what is left out."""
    lines: list[Text] = field(default_factory=list[Text])
    shortened: bool = False

    def rule(self, edge: str, title: str = "", style: str = "bold") -> None:
        """Add a horizontal line with a title in it."""
        line = self.look.text(edge, "dim")
        if title:
            line.append_text(clipped(self.look.text(f" {title} ", style), self.look.width - 4))
        line.append_text(self.look.text(self.look.edges.bar * max(0, self.look.width - line.cell_len), "dim"))
        self.lines.append(line)

    def add(self, line: Text) -> None:
        """Add a line inside the frame."""
        row = self.look.text(self.look.edges.side, "dim")
        row.append_text(line)
        self.lines.append(row)

    def text(self, text: str, style: str = "") -> None:
        """Add a text of one line across the frame, wrapped."""
        if text:
            self._flush_left(self._rows([self.look.text(text, style)], self.look.width - 4))

    def fields(self, fields: Sequence[tuple[str, str, str]], limit: int = 0) -> None:
        """Add named texts, with the names in a column."""
        column = min(_WIDEST_NAME, max((cell_len(name) for name, _, _ in fields), default=0))
        column = 0 if self.look.width - column < _NARROWEST else column
        for name, text, style in fields:
            if cell_len(self.look.spelled(name)) > column:
                self.text(name, "bold")
                self._block("", text, style, column=0, limit=limit)
            else:
                self._block(name, text, style, column=column, limit=limit)

    def diff(self, text: str, limit: int, changes: int = 0) -> None:
        """Add a unified diff, coloured by line. If it is too long, unchanged lines are left out first."""
        marked = list(marked_lines(text)) if text else []
        width, too_many = self.look.width - 4, limit + _WORTH - 1
        rows = self._diff_rows(marked) if not limit or len(marked) < too_many else []
        if marked and limit and (not rows or len(rows) >= too_many):
            most = max(limit, changes)
            changed = _without_context(marked)
            lines = [one for one in changed if not isinstance(one, int)]
            if len(lines) < most + _WORTH - 1 and len(self._diff_rows(lines)) < most + _WORTH - 1:
                for one in changed:
                    if isinstance(one, int):
                        self.left_out(f"{one} unchanged lines")
                    else:
                        self._flush_left(self._diff_rows([one]))
                return
            rows = self._laid_out([self.look.text(line, _DIFF_STYLES[mark]) for mark, line in lines], width, most)
        self._flush_left(rows, text)

    def _diff_rows(self, marked: Sequence[tuple[str, str]]) -> list[_Row]:
        return self._rows([self.look.text(line, _DIFF_STYLES[mark]) for mark, line in marked], self.look.width - 4)

    def left_out(self, what: str) -> None:
        """Add a line that says something is not shown."""
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
            # Only the two ends of a huge text are shown, so the middle is not laid out.
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
        """Wrap lines into rows: all of them, or the first and the last around a gap."""
        if limit and len(lines) >= limit + _WORTH - 1:
            return self._around_gap(lines[:limit], lines[-_TAIL:], width, limit)
        rows = self._rows(lines, width)
        is_long = limit and len(rows) >= limit + _WORTH - 1
        return self._around_gap(lines, lines, width, limit) if is_long else rows

    def _around_gap(
        self, first: Sequence[Text], last: Sequence[Text], width: int, limit: int, *, goes_on: bool = False
    ) -> list[_Row]:
        """Return the first and the last rows. `goes_on`: the last ones begin in the middle of a line."""
        end = self._rows(last, width)
        if goes_on:
            end[0] = (self.look.onward, end[0][1])
        return [*self._rows(first, width)[: limit - _TAIL - 1], ("", None), *end[-_TAIL:]]

    def _rows(self, lines: Iterable[Text], width: int) -> list[_Row]:
        """Wrap lines into rows and mark continuation rows."""
        onward = self.look.onward
        return [(onward if index else "", piece) for line in lines for index, piece in enumerate(folded(line, width))]


def _without_context(marked: Sequence[tuple[str, str]]) -> list[tuple[str, str] | int]:
    """Return a diff without its unchanged lines; where many were dropped, their number is in their place.

    Unchanged lines at the start and the end of a hunk are counted together at the end. Between two changes they are
    kept if they are few: without them the two changes would read as one.
    """
    runs = [(is_same, list(run)) for is_same, run in groupby(marked, lambda one: one[0] == " ")]
    # "No newline at end of file" belongs to the line above it.
    ends = [[mark for mark, line in run if mark or not line.startswith("\\")] for _, run in runs]
    around: list[int] = []
    for index, (is_same, _) in enumerate(runs):
        beside = (ends[index - 1][-1:] if index else [], ends[index + 1][:1] if index + 1 < len(runs) else [])
        if is_same and not all(mark and mark[0] in ("+", "-") for mark in beside):
            around.append(index)
    left_out = sum(len(runs[index][1]) for index in around)
    found: list[tuple[str, str] | int] = []
    for index, (is_same, run) in enumerate(runs):
        if index in around and left_out >= _WORTH:
            continue
        found += [len(run)] if is_same and len(run) >= _WORTH else run
    return [*found, left_out] if left_out >= _WORTH else found


def _missing(text: str, rows: Sequence[_Row]) -> str:
    """Say how much of a text is not among the rows."""
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
    """Wrap a line into pieces no wider than `width`. Nothing is dropped, including blanks."""
    offsets = _offsets(line.plain, max(1, width))
    return list(line.divide(offsets)) if offsets else [line]


def _offsets(text: str, width: int) -> list[int]:
    """Return where to wrap: after a blank if one is near, otherwise at the edge."""
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
    """Truncate a line to `width`, for lists, headings and notes. Nothing is decided from those alone."""
    if line.cell_len > width:
        line.truncate(max(1, width), overflow="ellipsis")
    return line
