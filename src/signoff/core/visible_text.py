"""Make hidden characters visible in text that people read.

Characters that hide, move or imitate text are escaped as a marker, such as `⟦ESC⟧`, `⟦U+202E⟧` or `⟦space×40⟧`:
control, bidi, zero-width and tag characters, odd spaces, fillers, stacked marks, lone surrogates, trailing blanks. The
brackets themselves are escaped if a text contains them, so only this module can make a marker.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import groupby

from signoff.core.pieces import characters, matches, pieces

OPEN, CLOSE = "⟦", "⟧"

_NAMES = {"\0": "NUL", "\a": "BEL", "\b": "BS", "\t": "TAB", "\n": "LF", "\r": "CR", "\x1b": "ESC", " ": "space"}
_NAMES["\x7f"] = "DEL"

# Printable according to Unicode, but invisible: fillers, blanks, joiners, variation selectors.
_BLANK = frozenset(
    map(
        chr,
        (
            *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0, 0x16FE4, 0x1D159),
            *(*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)),
        ),
    )
)

# In real text a letter has up to four marks: Hebrew with points and accents, Arabic, decomposed Vietnamese.
_MOST_MARKS = 4
# Trailing blanks are invisible, and long gaps push what follows out of sight.
_LONGEST_GAP = 24
_MOST_BREAKS = 6

_BLANKS = rf"[ \t]{{{_LONGEST_GAP + 1},}}|[ \t]+(?![^\n])|"
_ODD = re.compile(rf"{_BLANKS}\t+|[^\t\x20-\x7e]+")
_LONG_BREAK = rf"\n{{{_MOST_BREAKS + 1},}}"
_ODD_BETWEEN_LINES = re.compile(rf"{_BLANKS}{_LONG_BREAK}|[^\t\n\x20-\x7e]+")
_ODD_IN_OUTPUT = re.compile(r"[^\x20-\x7e]+")
_ODD_IN_OUTPUT_BETWEEN_LINES = re.compile(rf"{_LONG_BREAK}|[^\t\n\x20-\x7e]+")


def visible(text: str, *, lines: bool = False, output: bool = False) -> str:
    """Escape all hidden characters in `text`; line breaks and tabs are kept with `lines`.

    With `output` it is what a program printed: its columns and ends of lines are made of blanks, and nobody approves
    it, so blanks are kept, but for tabs in a single line. Two different texts never give the same result. Apply it only
    once: it would escape its own markers.
    """
    if output:
        odd = _ODD_IN_OUTPUT_BETWEEN_LINES if lines else _ODD_IN_OUTPUT
    else:
        odd = _ODD_BETWEEN_LINES if lines else _ODD
    read = (text[start:end] for start, end in pieces(text, _SEAM))
    return "".join([odd.sub(lambda found: "".join(_spell(found)), piece) for piece in read])


_SEAM = re.compile("[!-~](?=[ -~])")
"""Before a seam and after it nothing is hidden that goes on beyond it."""


def is_clean(text: str, *, lines: bool = False) -> bool:
    """Whether `text` contains nothing hidden, so that it is shown as it is."""
    return visible(text, lines=lines) == text


def has_hidden(text: str) -> bool:
    """Whether a text has characters that nobody sees or a terminal obeys; markers of `visible` do not count."""
    return not text.isprintable() or (not text.isascii() and not _BLANK.isdisjoint(text))


def quoted(text: str) -> str:
    """Quote somebody's words in a sentence, in quotes that nothing in them can close. Not safe to show yet."""
    return f"“{text.translate(_QUOTES)}”"


_QUOTES = dict.fromkeys(map(ord, "“”„‟″‶〝〞＂❝❞"), '"')
"""Characters that could be mistaken for the quotes around the text."""


def suspicious(text: str, *, code: bool = False) -> tuple[str, ...]:
    """Warnings about characters that a reader would misread, as short phrases; `code` if a program reads the text."""
    if text.isascii() and text.isprintable():
        return ()
    warnings: list[str] = []
    chars = characters(text) - {"\n", "\t", OPEN, CLOSE}
    if hidden := sorted(filter(_is_hidden, chars), key=_harmless):
        warnings.append("hidden characters: " + _few(hidden, _describe))
    if text.isascii():
        return tuple(warnings)
    if mixed := [word for word in _words(text) if _is_mixed(word)]:
        warnings.append("look-alike letters from different scripts: " + _few(mixed, lambda word: f"“{word}”"))
    if wide := sorted(char for char in chars if "\uff01" <= char <= "\uff5e"):
        warnings.append("full-width forms that look like plain ones: " + _few(wide, _describe))
    if dashes := sorted(set(_DASH.findall(text)) if chars & _DASHES else ()):
        warnings.append("a dash that is not “-”: " + _few(dashes, _describe))
    if code and (quotes := sorted(char for char in chars if _QUOTE.match(char))):
        warnings.append("quotes that are not plain quotes: " + _few(quotes, _describe))
    return tuple(visible(warning) for warning in warnings)


def _spell(odd: re.Match[str]) -> Iterator[str]:
    """Yield the pieces that replace a run of unusual characters."""
    if not any(_is_hidden(char) or _is_mark(char) for char in characters(odd[0])) and odd[0][0] != " ":
        yield odd[0]
        return
    base = odd.string[odd.start() - 1 : odd.start()]
    marks = ""
    for char, group in groupby(odd[0]):
        count = sum(1 for _ in group)
        if char == " " or _is_hidden(char):
            yield _marker(char, count)
            base, marks = "", ""
        elif not _is_mark(char):
            yield char * count
            if unicodedata.category(char) != "Mc":
                base, marks = char, ""
        elif base.isalpha() and char not in marks and len(marks) < _MOST_MARKS and unicodedata.combining(char) != 1:
            yield char
            marks += char
            if count > 1:
                yield _marker(char, count - 1)
        else:
            yield _marker(char, count)


def _marker(char: str, count: int) -> str:
    name = _NAMES.get(char) or f"U+{ord(char):04X}"
    return f"{OPEN}{name}{f'×{count}' if count > 1 else ''}{CLOSE}"


@lru_cache(maxsize=4096)
def _is_hidden(char: str) -> bool:
    return not char.isprintable() or char in _BLANK or char in (OPEN, CLOSE)


@lru_cache(maxsize=4096)
def _is_mark(char: str) -> bool:
    return unicodedata.category(char) in ("Mn", "Me")


_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_MOVES = frozenset("\b\r\x1b\x7f\x9b")
"""Characters that move the cursor, or start an escape sequence that does."""


def _harmless(char: str) -> tuple[int, str]:
    """Sort key: the most deceptive characters first, because only the first few are named."""
    if char in _BIDI:
        return 0, char
    if char in _MOVES:
        return 1, char
    return (2, char) if not char.isascii() else (3, char)


_WORD = re.compile(r"[^\W\d_]+")
_NO_WORD = re.compile(r"[\W\d_]")
_DASHES = frozenset("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d")
_DASH = re.compile(rf"(?<!\S)[{''.join(sorted(_DASHES))}]+(?=\w)")
_QUOTE = re.compile(r"[\u2018-\u201f\u2032-\u2037\u02bc\uff02\uff07]")
_ALIKE = frozenset({"LATIN", "CYRILLIC", "GREEK", "ARMENIAN", "CHEROKEE", "COPTIC", "LISU"})


def _words(text: str) -> Iterator[str]:
    return (word[0] for word in matches(_WORD, text, _NO_WORD) if not word[0].isascii())


def _is_mixed(word: str) -> bool:
    return len({_script(char) for char in word} & _ALIKE) > 1


@lru_cache(maxsize=4096)
def _script(char: str) -> str:
    return unicodedata.name(char, "").partition(" ")[0]


def _describe(chars: str) -> str:
    char = chars[0]
    name = _NAMES.get(char) or unicodedata.name(char, "").lower()
    return f"U+{ord(char):04X} {name}".rstrip()


def _few(found: list[str], describe: Callable[[str], str]) -> str:
    shown = ", ".join(map(describe, found[:3]))
    return f"{shown} and {len(found) - 3} more" if len(found) > 3 else shown
