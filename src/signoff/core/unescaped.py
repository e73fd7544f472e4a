"""Read a text as it was before it was escaped, quoted or encoded, and say where each part of it stands in the text.

A text that went through several programs may be spelled in several ways at once, so each way is tried by itself and
after each other one: `DEPTH` of them, one after the other. The work grows linearly with the text, whatever is in it:
the number of readings has a bound, and none is longer than the text, but for a few rare entities of HTML.
"""

from __future__ import annotations

import html
import re
from base64 import b64encode, urlsafe_b64encode
from binascii import a2b_base64
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate

DEPTH = 2
"""How many spellings are undone, one after the other: JSON in a URL, base64 of JSON."""
SHORTEST_PACKED = 6
"""Bytes that a text must have to be looked for in base64: fewer may stand there by chance."""

_Spans = Iterator[tuple[int, int, str]]
"""Parts of a text, in order, and what each of them means."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unescaped:
    """One reading of a text. The first is the text itself."""

    text: str
    whole: str
    """The text that was read."""
    packed: bool = False
    """Whether it was base64. Most of what such a reading says is noise."""
    _above: Unescaped | None = None
    _place: Callable[[int, int], tuple[int, int] | None] = field(default=lambda start, end: (start, end))
    """Where a part of it stands in the reading above."""

    def origin(self, start: int, end: int) -> tuple[int, int] | None:
        """Where in `whole` a part of `text` stands. None: nowhere, pieces were joined that do not belong together."""
        place = self._place(start, end)
        return place if place is None or self._above is None else self._above.origin(*place)


def unescaped(text: str) -> Iterator[Unescaped]:
    """Yield a text, and then what it may mean: as JSON, Python, a shell, a URL, HTML, SQL or base64 spell it."""
    level = [Unescaped(text=text, whole=text)]
    seen = {text}
    yield from level
    for _ in range(DEPTH):
        above, level = level, list[Unescaped]()
        for one in above:
            for found in _read(one):
                if found.text not in seen:
                    seen.add(found.text)
                    level.append(found)
                    yield found


def _read(above: Unescaped) -> Iterator[Unescaped]:
    packed = above.packed
    if packed:
        above = _legible(above)
    for spelling in _SPELLINGS:
        if any(all(sign in above.text for sign in signs) for signs in spelling.signs):
            yield _without(above, spelling.parts(above.text))
    yield from _unpacked(above, () if packed or above._above is None else _runs(above._above.text))  # pyright: ignore[reportPrivateUsage]


# --- escapes and quotes ---


def _without(above: Unescaped, parts: _Spans) -> Unescaped:
    """The reading in which these parts of the one above say what they mean."""
    pieces: list[str] = []
    stands, means = [0], [0]
    """Where pieces begin there and here, alternately one that is as it stands and one that is not."""
    at = here = 0
    for start, end, meaning in parts:
        pieces += above.text[at:start], meaning
        here += start - at
        stands += start, end
        means += here, here + len(meaning)
        at, here = end, here + len(meaning)
    pieces.append(above.text[at:])

    def place(start: int, end: int) -> tuple[int, int]:
        first, last = bisect_right(means, start) - 1, bisect_right(means, end - 1) - 1
        return (
            stands[first] + (0 if first % 2 else start - means[first]),
            stands[last + 1] if last % 2 else stands[last] + end - means[last],
        )

    return Unescaped(text="".join(pieces), whole=above.whole, packed=above.packed, _above=above, _place=place)


@dataclass(frozen=True, slots=True)
class _Spelling:
    """One way to spell a text."""

    parts: Callable[[str], _Spans]
    signs: Sequence[Sequence[str]]
    """All signs of one of these groups stand in a text that is spelled so."""


_HEX = "[0-9A-Fa-f]"
_ESCAPE = re.compile(
    rf"\\(?:u[dD][89ABab]{_HEX}{{2}}\\u[dD][C-Fc-f]{_HEX}{{2}}|u{_HEX}{{4}}|u\{{{_HEX}{{1,6}}\}}|U00{_HEX}{{6}}|x{_HEX}{{2}}"
    r"|[0-7]{1,3}|.)",
    re.DOTALL,
)
_BYTES = rf"(?:\\x[89A-Fa-f]{_HEX}|\\[23][0-7]{{2}}){{2,}}"
_ESCAPE_OR_BYTES = re.compile(rf"(?P<bytes>{_BYTES})|{_ESCAPE.pattern}", re.DOTALL)
_LETTERS = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "v": "\v", "a": "\a", "e": "\x1b", "\n": ""}
_CODES = re.compile(rf"(?:%{_HEX}{{2}})+")
_FORM = re.compile(rf"\+|{_CODES.pattern}")
_ENTITY = re.compile(rf"&(?:#[0-9]{{1,7}}|#[xX]{_HEX}{{1,6}}|[A-Za-z][A-Za-z0-9]{{1,31}});")
_APOSTROPHE = re.compile(r"""'\\''|'"'"'""")
_IN_SINGLE = r"\$'(?P<escaped>(?:[^'\\]|\\.)*+)'|'(?P<single>[^']*+)'"
_DOUBLE = r'"(?P<double>(?:[^"\\]|\\.)*+)"'
_CHAR = r"\\(?P<char>.)"
_IN_DOUBLE = re.compile(r"\\[$`\"\\\n]")


def _backslashes(text: str) -> _Spans:
    """As JSON, Python, C, and shells outside quotes and in `$'…'` write it."""
    for match in _ESCAPE.finditer(text):
        yield *match.span(), _escaped(match[0])


def _bytes(text: str) -> _Spans:
    """The same where `\\xc3\\xa9` and `\\303\\251` are bytes: in `repr` of bytes, in shells, in git."""
    for match in _ESCAPE_OR_BYTES.finditer(text):
        if match["bytes"] is None:
            yield *match.span(), _escaped(match[0])
            continue
        codes = match[0].split("\\")[1:]
        raw = bytes(int(code[1:], 16) if code[0] == "x" else int(code, 8) for code in codes)
        yield from _moved(_characters(raw, 4), match.start())


def _in_url(text: str) -> _Spans:
    for match in _CODES.finditer(text):
        yield from _moved(_characters(bytes.fromhex(match[0].replace("%", "")), 3), match.start())


def _in_form(text: str) -> _Spans:
    for match in _FORM.finditer(text):
        if match[0] == "+":
            yield *match.span(), " "
        else:
            yield from _moved(_characters(bytes.fromhex(match[0].replace("%", "")), 3), match.start())


def _in_html(text: str) -> _Spans:
    for match in _ENTITY.finditer(text):
        yield *match.span(), html.unescape(match[0])


def _quoted_apostrophes(text: str) -> _Spans:
    """An apostrophe within a quoted word of a shell, wherever that word begins: prose has other apostrophes."""
    for match in _APOSTROPHE.finditer(text):
        yield *match.span(), "'"


def _in_shell(*quoted: str) -> Callable[[str], _Spans]:
    """A command of a shell without its quotes. One that stands in quotes itself has only quotes of the other kind."""
    pattern = re.compile("|".join((*quoted, _CHAR)), re.DOTALL)

    def parts(text: str) -> _Spans:
        for match in pattern.finditer(text):
            if match["char"] is not None:
                yield *match.span(), "" if match["char"] == "\n" else match["char"]
                continue
            kind = match.lastgroup or ""
            start, end = match.span(kind)
            yield match.start(), start, ""
            yield from _moved(_INSIDE[kind](match[kind]), start)
            yield end, match.end(), ""

    return parts


def _in_double(text: str) -> _Spans:
    for match in _IN_DOUBLE.finditer(text):
        yield *match.span(), match[0][1].strip("\n")


def _doubled(mark: str) -> Callable[[str], _Spans]:
    """As SQL, YAML and CSV write a quote within quotes."""
    twice = re.compile(mark * 2)

    def parts(text: str) -> _Spans:
        for match in twice.finditer(text):
            yield *match.span(), mark

    return parts


def _moved(parts: _Spans, by: int) -> _Spans:
    for start, end, meaning in parts:
        yield start + by, end + by, meaning


def _characters(raw: bytes, width: int) -> _Spans:
    """The characters of some bytes, each of which is written with so many."""
    at = 0
    for char in raw.decode("utf-8", "surrogateescape"):
        size = len(char.encode("utf-8", "surrogateescape")) * width
        yield at, at + size, char
        at += size


@lru_cache(maxsize=4096)
def _escaped(escape: str) -> str:
    kind, code = escape[1], escape[2:].strip("{}")
    if kind == "u" and "\\" in code:
        high, low = (int(one, 16) for one in code.split("\\u"))
        return chr(0x10000 + ((high - 0xD800) << 10) + low - 0xDC00)
    if kind in "uUx" and code:
        return chr(int(code, 16)) if int(code, 16) <= 0x10FFFF else escape
    if kind in "01234567":
        return chr(int(escape[1:], 8))
    return _LETTERS.get(kind, kind)


_INSIDE: Mapping[str, Callable[[str], _Spans]] = {
    "single": lambda _: iter(()),
    "escaped": _backslashes,
    "double": _in_double,
}
_SPELLINGS = (
    _Spelling(_backslashes, ["\\"]),
    _Spelling(_bytes, ["\\x", "\\2", "\\3"]),
    _Spelling(_in_url, ["%"]),
    _Spelling(_in_form, ["+"]),
    _Spelling(_in_html, ["&"]),
    _Spelling(_quoted_apostrophes, ["'\\''", "'\"'\"'"]),
    _Spelling(_in_shell(_IN_SINGLE, _DOUBLE), ["'", '"']),
    _Spelling(_in_shell(_IN_SINGLE), [("'", '"')]),
    _Spelling(_in_shell(_DOUBLE), [("'", '"')]),
    _Spelling(_doubled("'"), ["''"]),
    _Spelling(_doubled('"'), ['""']),
)


# --- base64 ---

_RUN = re.compile(r"[A-Za-z0-9+/_-]{8,}")
_STANDARD = str.maketrans("-_", "+/")
_LEGIBLE = re.compile("[^\0-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff]{5,}")


def _runs(text: str) -> Sequence[str]:
    return _RUN.findall(text)


def inside_base64(raw: bytes) -> Iterator[str]:
    """Yield what is the same in the base64 of every longer text with this in it: it may begin at three places."""
    for before in range(3):
        known = slice((before * 8 + 5) // 6, (before + len(raw)) * 8 // 6)
        for encode in (b64encode, urlsafe_b64encode):
            yield encode(bytes(before) + raw).decode()[known]


def _unpacked(above: Unescaped, known: Iterable[str]) -> Iterator[Unescaped]:
    """Yield what the base64 in a text says. It may begin anywhere in a word, which is four readings.

    Words that are `known`, because the text above has them too, are left out where none beside them is new.
    """
    runs = list(_RUN.finditer(above.text))
    if old := frozenset(known):
        new = [False, *(run[0] not in old for run in runs), False]
        runs = [run for at, run in enumerate(runs) if any(new[at : at + 3])]
    if not runs:
        return
    joined = "".join(run[0] for run in runs).translate(_STANDARD)
    begins = list(accumulate((run.end() - run.start() for run in runs), initial=0))
    for phase in range(4):
        part = joined[phase : len(joined) - ((len(joined) - phase) % 4 == 1)]
        text = a2b_base64(part + "=" * (-len(part) % 4)).decode("utf-8", "surrogateescape")
        yield Unescaped(
            text=text,
            whole=above.whole,
            packed=True,
            _above=above,
            _place=_packed_place(above, text, runs, begins, phase),
        )


def _packed_place(
    above: Unescaped, text: str, runs: Sequence[re.Match[str]], begins: Sequence[int], phase: int
) -> Callable[[int, int], tuple[int, int] | None]:
    sizes: list[int] = []

    def place(start: int, end: int) -> tuple[int, int] | None:
        if not sizes:  # few readings are asked
            sizes.extend(accumulate((len(char.encode("utf-8", "surrogateescape")) for char in text), initial=0))
        first, beyond = phase + sizes[start] * 4 // 3, phase + (sizes[end] * 4 + 2) // 3
        one, other = bisect_right(begins, first) - 1, bisect_right(begins, beyond - 1) - 1
        begin = runs[one].start() + first - begins[one]
        stop = runs[other].start() + beyond - begins[other]
        # Lines are joined. Anything else between two words would be hidden by a mask over both.
        between = len("".join(above.text[begin:stop].split())) - (beyond - first)
        return None if between else (begin, stop)

    return place


def _legible(above: Unescaped) -> Unescaped:
    """What may be text in a reading of base64. Without the noise, little is left to be read further."""
    found = list(_LEGIBLE.finditer(above.text))
    begins = list(accumulate((one.end() - one.start() + 1 for one in found), initial=0))

    def place(start: int, end: int) -> tuple[int, int]:
        at = bisect_right(begins, start) - 1
        return found[at].start() + start - begins[at], found[at].start() + end - begins[at]

    text = "\0".join(one[0] for one in found)
    return Unescaped(text=text, whole=above.whole, packed=True, _above=above, _place=place)
