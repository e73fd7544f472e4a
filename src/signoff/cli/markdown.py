"""Streaming Markdown renderer for a model's text on a terminal.

Output is never redrawn, so an interruption leaves the screen intact. Every row begins with a bar that nothing else on
the screen uses: a model's text cannot imitate a question, an answer or a line of progress. No text is hidden: only the
marks of emphasis, code and headings are left out, links show their URL, and control characters are escaped visibly.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from typing import NamedTuple

from signoff.cli.safe_output import STEERS
from signoff.cli.terminal_text import cells
from signoff.core.visible_text import visible

BAR, PLAIN_BAR = "┃ ", ": "
"""What every row begins with: normally, and on a terminal that cannot show the first."""
NARROWEST = 24
FARTHEST = 400
"""Most characters between a mark and the one that closes it. A mark without one in reach is plain text."""

_BOLD, _DIM, _ITALIC, _UNDERLINE, _CODE = "1", "2", "3", "4", "36"

_FENCE = re.compile(r" {0,3}(```+|~~~+)")
_HEADING = re.compile(r" {0,3}(#{1,6}) +")
_ITEM = re.compile(r"( *)([-*+]|\d{1,9}[.)]) +")
_QUOTE = re.compile(r" {0,3}> ?")
_TABLE = re.compile(r" {0,3}\|")
_RULE = re.compile(r"[ |:\-]+")
_ONLY_MARKS = re.compile(r"[ \t#>*+\-_=~`|]*(?:\d{1,9}[.)]?)?[ \t]*")
"""A beginning of a line that may still become any kind of block."""
_MARKED = re.compile(r"\\(?P<escaped>[!-/:-@\[-`{-~])|(?P<mark>`+|\*\*|__|\*|_|!?\[)")
_LINK = re.compile(r"\]\(([^()\s]*(?:\([^()\s]*\)[^()\s]*)*(?: +\"[^\"]*\")?)\)")
_WIDE = "\u2e80-\ua4cf\uac00-\ud7af\uf900-\ufaff\ufe30-\ufe4f\uff00-\uffef"
"""Scripts that are written without spaces: a row may be wrapped after each of their characters."""
_PIECES = re.compile(rf" +|[{_WIDE}]|[^ {_WIDE}]+")
_WORD_ENDS = re.compile(rf"[ {_WIDE}](?!.*[ {_WIDE}])")


class Span(NamedTuple):
    """A piece of a line, and its style."""

    text: str
    style: tuple[str, ...] = ()


class Markdown:
    """Renders text that arrives in pieces. The output does not depend on where the text was cut."""

    def __init__(self, width: int, *, styled: bool = True, bar: str = BAR) -> None:
        """`width` is that of the screen; zero: lines are never wrapped. Without `styled` the text stays as it is."""
        self._width = max(NARROWEST, width) if width else 0
        self._styled = styled
        self._bar = bar
        self._line = ""
        """The part of the current line that is not written yet."""
        self._begun = False
        """Whether part of the current line was written; the rest of it is then text, whatever it looks like."""
        self._before = ""
        """The last character of the current line that was written."""
        self._inline: tuple[str, ...] = ()
        self._hang = 0
        """Indentation of the continuation rows of a line."""
        self._fence = ""
        """The fence that closes the open code block."""
        self._table: list[str] = []
        self._blank = 0
        """Blank lines that are written only if something follows."""
        self._column = 0
        self._open = False
        """Whether a row is begun."""
        self._pending = ""
        """Spaces that are written only if something follows in the same row."""
        self._return = False
        """Whether the last character was a carriage return, which may be part of a line ending."""
        self._is_bare = True
        """Whether only blank lines came so far."""

    def feed(self, text: str) -> str:
        """Add text; return what to write now."""
        return "".join(self._fed(text))

    def end(self) -> str:
        """End the text; return what is left to write. It ends with a line break if there was any text."""
        return "".join(self._ended())

    # --- lines ---

    def _fed(self, text: str) -> Iterator[str]:
        if self._return:
            text, self._return = f"\r{text}", False
        if text.endswith("\r"):
            text, self._return = text[:-1], True
        self._line += STEERS.sub(lambda found: visible(found[0]), text.replace("\r\n", "\n")).replace("\t", "    ")
        while "\n" in self._line:
            line, _, self._line = self._line.partition("\n")
            yield from self._whole(line)
        yield from self._partly()

    def _ended(self) -> Iterator[str]:
        if self._return:
            self._line, self._return = f"{self._line}{visible(chr(13))}", False
        if self._line or self._begun:
            line, self._line = self._line, ""
            yield from self._whole(line)
        yield from self._tabled()
        self._fence = ""

    def _whole(self, line: str) -> Iterator[str]:
        """Write a complete line, or the rest of one."""
        if self._begun:
            yield from self._spans(line, self._inline, whole=True)
            yield from self._break()
            self._begun = False
            return
        if not line.strip() and not self._fence:
            yield from self._tabled()
            self._blank = 1 if self._styled else self._blank + 1
            return
        if not _TABLE.match(line):
            yield from self._tabled()
        if not self._table:
            yield from self._gap()
        if not self._styled:
            yield from self._verbatim(line, ())
        elif self._fence:
            closes = line.strip().startswith(self._fence) and not line.strip().strip(self._fence[0])
            yield from self._verbatim(line, (_DIM,) if closes else (_CODE,))
            self._fence = "" if closes else self._fence
        elif found := _FENCE.match(line):
            self._fence = found[1]
            yield from self._verbatim(line, (_DIM,))
        elif _TABLE.match(line):
            self._table.append(line)
        else:
            text = yield from self._opening(line)
            yield from self._spans(text, self._inline, whole=True)
            yield from self._break()

    def _partly(self) -> Iterator[str]:
        """Write the part of an incomplete line whose rendering is already certain."""
        line = self._line
        if not self._begun:
            held = not self._styled or self._fence or _FENCE.match(line) or _TABLE.match(line)
            if held or _ONLY_MARKS.fullmatch(line):
                return
            yield from self._tabled()
            yield from self._gap()
            self._begun = True
            self._line = yield from self._opening(line)
        yield from self._spans(self._line, self._inline, whole=False)

    def _gap(self) -> Iterator[str]:
        """Write the blank lines before what comes now."""
        for _ in range(0 if self._is_bare else self._blank):
            yield from self._break()
        self._is_bare, self._blank = False, 0

    def _opening(self, line: str) -> Generator[str, None, str]:
        """Write what a line begins with; return the rest of the line."""
        self._inline, self._hang, self._before = (), 0, ""
        if found := _HEADING.match(line):
            self._inline = (_BOLD, _UNDERLINE) if len(found[1]) == 1 else (_BOLD,)
            return line[found.end() :]
        if found := _ITEM.match(line):
            mark = found[2] if found[2][0].isdigit() else "•" if self._bar == BAR else "-"
            yield from self._put(Span(f"{found[1]}{mark} "))
            self._hang = len(found[1]) + len(mark) + 1
            return line[found.end() :]
        if found := _QUOTE.match(line):
            self._inline = (_ITALIC,)
            yield from self._put(Span("> ", (_DIM,)))
            self._hang = 2
            return line[found.end() :]
        text = line.lstrip(" ")
        self._hang = len(line) - len(text)
        yield from self._put(Span(" " * self._hang))
        return text

    # --- spans ---

    def _spans(self, text: str, style: tuple[str, ...], *, whole: bool) -> Iterator[str]:
        """Write a text, rendered; whole words only if it is incomplete. The rest stays in `_line`."""
        ends = None if whole else _WORD_ENDS.search(text)
        upto = len(text) if whole else ends.end() if ends is not None else 0
        at, spans = 0, list[tuple[Span, int]]()
        for span, start, end in _rendered(text, style, whole=whole, before=self._before):
            if end > upto and not whole:
                if start < upto and span.text == text[start:end]:  # plain text: its whole words can be written
                    spans.append((Span(text[start:upto], span.style), start))
                    at = upto
                elif spans and spans[-1][0].text == text[spans[-1][1] : start]:  # hold back a word before a mark
                    before, begin = spans.pop()
                    ends = _WORD_ENDS.search(before.text)
                    at = begin + (ends.end() if ends is not None else 0)
                    spans.append((Span(text[begin:at], before.style), begin))
                break
            spans.append((span, start))
            at = end
        for span, _ in spans:
            yield from self._put(span)
        if not whole:
            self._line, self._before = text[at:], text[at - 1 : at] or self._before

    def _put(self, span: Span) -> Iterator[str]:
        """Write a span, wrapped into as many rows as needed."""
        for piece in _PIECES.findall(span.text):
            if piece.isspace():
                self._pending += piece
                continue
            room = self._width - cells(self._bar) if self._width else 0
            if room and self._column and self._column + cells(self._pending) + cells(piece) > room:
                yield from self._break()
                self._pending = " " * (self._hang if self._hang < room // 2 else 0)
            if room and cells(self._pending) > room // 2:
                self._pending = " " * (room // 2)
            yield from self._row()
            yield self._pending
            self._column, self._pending = self._column + cells(self._pending), ""
            for part in self._parts(piece, room):
                if part == "\n":
                    yield from self._break()
                    yield from self._row()
                    continue
                yield self._in(part, span.style)
                self._column += cells(part)

    def _parts(self, word: str, room: int) -> Iterator[str]:
        """Split a word, with a line break wherever it does not fit a row."""
        part, used = "", self._column
        for char in word:
            used += cells(char)
            if room and used > room and (part or self._column):
                if part:
                    yield part
                yield "\n"
                part, used = "", cells(char)
            part += char
        if part:
            yield part

    def _verbatim(self, line: str, style: tuple[str, ...]) -> Iterator[str]:
        """Write a line as it is, wrapped if it is too long."""
        room = self._width - cells(self._bar) if self._width else 0
        yield from self._row()
        for part in self._parts(line.rstrip(" "), room):
            if part == "\n":
                yield from self._break()
                yield from self._row()
                continue
            yield self._in(part, style)
            self._column += cells(part)
        yield from self._break()

    def _row(self) -> Iterator[str]:
        """Begin a row, if none is begun."""
        if not self._open:
            self._open = True
            yield self._in(self._bar, (_DIM,))

    def _break(self) -> Iterator[str]:
        yield from self._row()
        yield "\n"
        self._open, self._column, self._pending = False, 0, ""

    def _in(self, text: str, style: tuple[str, ...]) -> str:
        return f"\x1b[{';'.join(style)}m{text}\x1b[0m" if style and self._styled and text else text

    # --- tables ---

    def _tabled(self) -> Iterator[str]:
        """Write the table that was collected: in columns if it fits, else as it is."""
        lines, self._table = self._table, []
        if not lines:
            return
        rows = [[tuple(one for one, _, _ in _rendered(cell, ())) for cell in _cells_of(line)] for line in lines]
        sizes = [max(_size(row[at]) if at < len(row) else 0 for row in rows) for at in range(max(map(len, rows)))]
        fits = not self._width or sum(sizes) + 3 * len(sizes) + cells(self._bar) < self._width
        for line, row in zip(lines, rows, strict=True):
            if not fits:
                yield from self._verbatim(line, ())
                continue
            yield from self._row()
            if _RULE.fullmatch(line):
                yield self._in("  ".join("-" * size for size in sizes), (_DIM,))
            else:
                for spans, size in zip(row, sizes, strict=False):
                    yield "".join(self._in(one.text, one.style) for one in spans)
                    yield " " * (size - _size(spans) + 2)
            yield from self._break()


def _cells_of(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().removeprefix("|").removesuffix("|"))]


def _size(spans: tuple[Span, ...]) -> int:
    return sum(cells(one.text) for one in spans)


def _rendered(
    text: str, style: tuple[str, ...], *, whole: bool = True, before: str = ""
) -> Iterator[tuple[Span, int, int]]:
    """The spans of a text, each with its start and end. `before` is the character before the text.

    If the text is incomplete, only whole words before the first undecided mark.
    """
    at = plain = 0
    while found := _MARKED.search(text, at):
        start = found.start()
        if found["escaped"]:
            made = (found["escaped"], found.end(), ())
        else:
            made = _marked(text, start, found["mark"], text[start - 1 : start] or before)
            if made is None and not whole and len(text) <= found.end() + FARTHEST + 4:
                break  # the closing mark may still come
        if made is None:
            at = found.end()
            continue
        inner, end, more = made
        if plain < start:
            yield Span(text[plain:start], style), plain, start
        if isinstance(inner, str):
            yield Span(inner, (*style, *more)), start, end
        else:
            for piece in inner:
                for span, _, _ in _rendered(piece[0], (*style, *more)) if piece[1] else [(Span(piece[0], style), 0, 0)]:
                    yield span, start, end
        at = plain = end
    else:
        start = len(text) - 1 if text.endswith("\\") and not whole else len(text)
        if plain < start:
            yield Span(text[plain:start], style), plain, start
        return
    if (ends := _WORD_ENDS.search(text, plain, start)) is not None:
        yield Span(text[plain : ends.end()], style), plain, ends.end()


def _marked(
    text: str, start: int, mark: str, before: str
) -> tuple[str | list[tuple[str, bool]], int, tuple[str, ...]] | None:
    """What a mark begins: its content, its end and its style. None if it is a plain character."""
    inside = start + len(mark)
    far = inside + FARTHEST
    if mark[0] == "`":
        end = next((one.start() for one in re.compile(r"`+").finditer(text, inside, far) if one[0] == mark), -1)
        return (text[inside:end], end + len(mark), (_CODE,)) if end > inside else None
    if mark[-1] == "[":
        found = _LINK.search(text, inside, far)
        if found is None:
            return None
        label = text[inside : found.start()]
        return [(label or "link", True), (f" ({found[1]})", False)], found.end(), (_UNDERLINE,)
    if text[inside : inside + 1].strip() == "" or (mark[0] == "_" and before.isalnum()):
        return None
    end = text.find(mark, inside + 1, far)
    while end > 0 and (text[end - 1] in " \\" or (mark == "*" and text[end : end + 2] == "**")):
        end = text.find(mark, end + len(mark) + (text[end : end + 2] == "**"), far)
    if end <= 0 or (mark[0] == "_" and text[end + len(mark) : end + len(mark) + 1].isalnum()):
        return None
    return [(text[inside:end], True)], end + len(mark), (_BOLD,) if len(mark) == 2 else (_ITALIC,)
