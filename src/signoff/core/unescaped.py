"""Read a text as it was before it was escaped, quoted or encoded, and say where each part of it stands in the text.

A text that went through several programs may be spelled in several ways at once, so each way is tried by itself and
after each other one: `DEPTH` of them, one after the other. The work grows linearly with the text, whatever is in it:
the number of readings has a bound, and none is longer than the text, but for a few rare entities of HTML.
"""

from __future__ import annotations

import html
import re
from binascii import a2b_base64
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate

from signoff.core.credential import inside_base64
from signoff.core.pieces import matches

DEPTH = 2
"""How many spellings are undone, one after the other: JSON in a URL, base64 of JSON."""
SHORTEST_PACKED = 6
"""Bytes that a text must have to be looked for in base64: fewer may stand there by chance."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unescaped:
    """One reading of a text. The first is the text itself."""

    text: str
    whole: str
    """The text that was read."""
    packed: bool = False
    """Whether it was base64. Most of what such a reading says is noise."""
    above: Unescaped | None = None
    _place: Callable[[int, int], tuple[int, int] | None] = field(default=lambda start, end: (start, end))
    """Where a part of it stands in the reading above."""

    def origin(self, start: int, end: int) -> tuple[int, int] | None:
        """Where in `whole` a part of `text` stands. None: nowhere, pieces were joined that do not belong together."""
        place = self._place(start, end)
        return place if place is None or self.above is None else self.above.origin(*place)


def unescaped(text: str, is_promising: Callable[[str], bool] = bool, *, is_part: bool = False) -> Iterator[Unescaped]:
    """Yield a text, and then what it may mean: as JSON, Python, a shell, a URL, HTML, SQL or base64 spell it.

    Few texts have in them what is looked for. `is_promising` says whether a text may have it in some spelling; of one
    that may not, only the base64 is read. With `is_part` a quote may have been opened before the text.
    """
    whole = Unescaped(text=text, whole=text)
    yield whole
    if not is_promising(text):
        packed = list(_unpacked(whole))
        if not any(is_promising(_legible(one).text) for one in packed):
            yield from packed
            return
    level, seen = [whole], {text}
    for _ in range(DEPTH):
        above, level = level, list[Unescaped]()
        for one in above:
            for found in _read(one, is_promising if one is not whole else bool, is_part):
                # What is packed may say the same, and stand elsewhere: an escape between two pieces is gone.
                if found.packed or found.text not in seen:
                    seen.add(found.text)
                    level.append(found)
                    yield found


_LETTER = r"(?:3\d|[46][1-9A-Fa-f]|[57][0-9Aa])"
_HEXED = r"(?:x|u00|u\{0*|U000000)"
_IN_TWO = r"(?=[A-Za-z0-9])(?!(?:s|t|d|m|re|ve|ll)\b)"
LOOSE = re.compile(
    # All begin with one of these signs: it is looked for as fast as a word, and no run of letters is read twice.
    r"[%\\&'\"](?:"
    # a letter or a digit that is escaped, or the sign of an escape that is escaped itself
    rf"(?<=%)(?:{_LETTER}|25{_LETTER}|26(?:#|%23)|5[Cc][xuU0167])"
    rf"|(?<=\\)(?:{_HEXED}(?:{_LETTER}|2[56]|5[Cc])|(?:06|07|1[0-7])[0-7]|6\d|04[56]|134)"
    rf"|(?<=&)(?:\\?#(?:[xX]0*{_LETTER}|0*(?:4[89]|5\d|[6-9]\d|1[012]\d))\\?;"
    r"|amp;#|#(?:37|38|92|[xX](?:2[56]|5[Cc]));|percnt;|bsol;)"
    # a word in pieces: by quotes, over two lines, or as base64 over lines that are escaped
    rf"|(?<=[A-Za-z0-9]['\"])(?<!\W[BbRrUuFf]['\"])['\"]*{_IN_TWO}"
    rf"|(?<=[A-Za-z0-9]\\)(?<!\W[BbRrUuFf]\\)\n{_IN_TWO}"
    r"|(?<=[A-Za-z0-9+/]{60}\\)(?:\\*r\\+|\\*)n"
    r")"
)
"""Signs that a letter or a digit of a word may not be written as it is, or that a word may be in pieces."""


def marks(words: Iterable[str]) -> frozenset[str]:
    """Words of letters and digits alone; and what is always the same in the base64 of a text with them, `DEPTH` times.

    All consist of letters and digits, so one stands in every spelling of such a text that is not `LOOSE`.
    """
    found = frozenset(words)
    for _ in range(DEPTH):
        found |= {form for word in found for form in inside_base64(word.encode()) if form.isalnum()}
    return found


def _read(above: Unescaped, is_promising: Callable[[str], bool], is_part: bool) -> Iterator[Unescaped]:
    one = _legible(above) if above.packed else above
    if is_promising(one.text):
        for spelling in _SPELLINGS:
            if any(all(sign in one.text for sign in signs) for signs in spelling.signs):
                for opened in ("", *spelling.quotes) if is_part else ("",):
                    yield _without(one, spelling, opened)
    elif above.packed:
        return
    yield from _unpacked(
        one, () if above.packed or above.above is None else (run[0] for run in runs_in(above.above.text))
    )


# --- escapes and quotes ---


@dataclass(frozen=True, slots=True)
class _Spelling:
    """One way to spell a text: what is not written as it is, and what it means."""

    pattern: re.Pattern[str]
    meaning: Callable[[re.Match[str]], str]
    signs: Sequence[Sequence[str]] = ()
    """All signs of one of these groups stand in a text that is spelled so."""
    inside: Mapping[str, _Spelling | None] = field(default_factory=dict[str, "_Spelling | None"])
    """How the contents of quotes are spelled, by the name of their group; None: as they are."""
    quotes: str = ""
    """Quotes that may be open where a text begins."""

    def read(self, text: str) -> str:
        """What a text means."""
        return self.pattern.sub(self.meaning, text)

    def parts(self, text: str) -> Iterator[tuple[int, int, str]]:
        """Yield what is not written as it is, in order, and what it means."""
        for match in self.pattern.finditer(text):
            kind = match.lastgroup
            if kind is None or kind not in self.inside:
                yield *match.span(), self.meaning(match)
                continue
            start, end = match.span(kind)
            yield match.start(), start, ""
            if (inner := self.inside[kind]) is not None:
                yield from ((at + start, to + start, meaning) for at, to, meaning in inner.parts(match[kind]))
            yield end, match.end(), ""


def _without(above: Unescaped, spelling: _Spelling, opened: str) -> Unescaped:
    """The reading in which what is spelled so says what it means, after a quote that may be open."""
    text = opened + above.text
    bounds: list[tuple[list[int], list[int]]] = []

    def place(start: int, end: int) -> tuple[int, int]:
        if not bounds:  # few readings are asked
            bounds.append(_bounds(spelling.parts(text)))
        stands, means = bounds[0]
        first, last = bisect_right(means, start) - 1, bisect_right(means, end - 1) - 1
        begin = stands[first] + (0 if first % 2 else start - means[first])
        stop = stands[last + 1] if last % 2 else stands[last] + end - means[last]
        return max(0, begin - len(opened)), stop - len(opened)

    return Unescaped(text=spelling.read(text), whole=above.whole, packed=above.packed, above=above, _place=place)


def _bounds(parts: Iterator[tuple[int, int, str]]) -> tuple[list[int], list[int]]:
    """Where pieces begin, as they stand and as they are read: by turns as they are, and not."""
    stands, means = [0], [0]
    at = here = 0
    for start, end, meaning in parts:
        here += start - at
        stands += start, end
        means += here, here + len(meaning)
        at, here = end, here + len(meaning)
    return stands, means


_HEX = "[0-9A-Fa-f]"
_NEXT = r"(?:\\x[89ABab][0-9A-Fa-f]|\\2[0-7]{2})"
_ESCAPE = (
    rf"\\(?:u[dD][89ABab]{_HEX}{{2}}\\u[dD][C-Fc-f]{_HEX}{{2}}|u{_HEX}{{4}}|u\{{{_HEX}{{1,6}}\}}|U00{_HEX}{{6}}"
    rf"|x{_HEX}{{2}}|[0-7]{{1,3}}|.)"
)
_BYTES = (
    rf"(?P<bytes>(?:\\x[CDcd]{_HEX}|\\3[0-3][0-7]){_NEXT}|(?:\\x[Ee]{_HEX}|\\3[45][0-7]){_NEXT}{{2}}"
    rf"|(?:\\x[Ff][0-7]|\\36[0-7]){_NEXT}{{3}})|{_ESCAPE}"
)
_LETTERS = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f", "v": "\v", "a": "\a", "e": "\x1b", "\n": ""}
_MORE = "%[89ABab][0-9A-Fa-f]"
_IN_URL = rf"%[0-7]{_HEX}|%[CDcd]{_HEX}{_MORE}|%[Ee]{_HEX}(?:{_MORE}){{2}}|%[Ff][0-7](?:{_MORE}){{3}}|%{_HEX}{{2}}"
_ENTITY = rf"&(?:#[0-9]{{1,7}}|#[xX]{_HEX}{{1,6}}|[A-Za-z][A-Za-z0-9]{{1,31}});"
_IN_SINGLE = r"\$'(?P<escaped>[^'\\]*+(?:\\.[^'\\]*+)*)'|'(?P<single>[^']*+)'"
_DOUBLE = r'"(?P<double>[^"\\]*+(?:\\.[^"\\]*+)*)"'
_CHAR = r"\\(?P<char>.)"


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


@lru_cache(maxsize=4096)
def _from_bytes(codes: str) -> str:
    told = codes.split("\\")[1:]
    return bytes(int(code[1:], 16) if code[0] == "x" else int(code, 8) for code in told).decode(errors="replace")


@lru_cache(maxsize=4096)
def _from_url(codes: str) -> str:
    return " " if codes == "+" else bytes.fromhex(codes.replace("%", "")).decode("utf-8", "surrogateescape")


_ENTITIES = lru_cache(maxsize=4096)(html.unescape)


def _unquoted(match: re.Match[str]) -> str:
    kind = match.lastgroup or ""
    inner = _INSIDE.get(kind)
    return match[kind].strip("\n") if kind == "char" else match[kind] if inner is None else inner.read(match[kind])


_BACKSLASHES = _Spelling(re.compile(_ESCAPE, re.DOTALL), lambda match: _escaped(match[0]), [("\\",)])
"""As JSON, Python, C, and shells outside quotes and in `$'…'` write it."""
_INSIDE: Mapping[str, _Spelling | None] = {
    "single": None,
    "escaped": _BACKSLASHES,
    "double": _Spelling(re.compile(r"\\[$`\"\\\n]"), lambda match: match[0][1].strip("\n")),
}


def _shell(signs: Sequence[Sequence[str]], *quoted: str) -> _Spelling:
    """A command of a shell. One that stands in quotes itself has only quotes of the other kind."""
    quotes = "".join(one[-1] for one in quoted)
    return _Spelling(re.compile("|".join((*quoted, _CHAR)), re.DOTALL), _unquoted, signs, _INSIDE, quotes)


_SPELLINGS = (
    _BACKSLASHES,
    # The same where `\xc3\xa9` and `\303\251` are bytes: in `repr` of bytes, in shells, in git.
    _Spelling(
        re.compile(_BYTES, re.DOTALL),
        lambda match: _escaped(match[0]) if match["bytes"] is None else _from_bytes(match[0]),
        [("\\x",), ("\\2",), ("\\3",)],
    ),
    _Spelling(re.compile(_IN_URL), lambda match: _from_url(match[0]), [("%",)]),
    _Spelling(re.compile(rf"\+|{_IN_URL}"), lambda match: _from_url(match[0]), [("+",)]),
    _Spelling(re.compile(_ENTITY), lambda match: _ENTITIES(match[0]), [("&",)]),
    # An apostrophe within a quoted word of a shell, wherever that word begins: prose has other apostrophes.
    _Spelling(re.compile(r"""'\\''|'"'"'"""), lambda _: "'", [("'\\''",), ("'\"'\"'",)]),
    _shell([("'",), ('"',)], _IN_SINGLE, _DOUBLE),
    _shell([("'", '"')], _IN_SINGLE),
    _shell([("'", '"')], _DOUBLE),
    # As SQL, YAML and CSV write a quote within quotes.
    _Spelling(re.compile("''"), lambda _: "'", [("''",)]),
    _Spelling(re.compile('""'), lambda _: '"', [('""',)]),
)


# --- base64 ---

SHORTEST_RUN = 8
_RUN = re.compile(rf"[A-Za-z0-9+/_-]{{{SHORTEST_RUN},}}")
_NO_RUN = re.compile(r"[^A-Za-z0-9+/_-]")
STANDARD = str.maketrans("-_", "+/")
_LEGIBLE = re.compile("[^\0-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff]{5,}")


def runs_in(text: str) -> Iterator[re.Match[str]]:
    """The words of a text that may be base64."""
    return matches(_RUN, text, _NO_RUN)


def _unpacked(above: Unescaped, known: Iterable[str] = ()) -> Iterator[Unescaped]:
    """Yield what the base64 in a text says. It may begin anywhere in a word, which is four readings.

    Words that are `known`, because the text above has them too, are left out where none beside them is new.
    """
    runs = list(runs_in(above.text))
    if old := frozenset(known):
        new = [False, *(run[0] not in old for run in runs), False]
        runs = [run for at, run in enumerate(runs) if any(new[at : at + 3])]
    if not runs:
        return
    joined = "".join(run[0] for run in runs).translate(STANDARD)
    begins = list(accumulate((run.end() - run.start() for run in runs), initial=0))
    for phase in range(4):
        part = joined[phase : len(joined) - ((len(joined) - phase) % 4 == 1)]
        text = a2b_base64(part + "=" * (-len(part) % 4)).decode("utf-8", "surrogateescape")
        yield Unescaped(
            text=text,
            whole=above.whole,
            packed=True,
            above=above,
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
    return Unescaped(text=text, whole=above.whole, packed=True, above=above, _place=place)
