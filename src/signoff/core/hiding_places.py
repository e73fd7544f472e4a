"""Where in a long text a secret may stand in another spelling: only those parts are read in every spelling.

To read a text in every spelling takes a hundred times as long as to look for words in it. Wherever a secret is spelled
otherwise, a word of it stands there as it is, or as base64, or a letter of it is escaped: these are the clues. Around
each, as much is read as a secret takes in the longest spelling.
"""

from __future__ import annotations

import re
from binascii import a2b_base64
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from string import ascii_letters, digits

from signoff.core.credential import OWN_CLUE, OWN_PACKED, inside_base64
from signoff.core.pieces import PIECE
from signoff.core.unescaped import DEPTH, LOOSE, SHORTEST_RUN, Unescaped, runs_in, unescaped

LONGEST_OWN = 100
"""Characters of the longest credential that signoff issues itself."""
_DOTS = re.compile(r"…|\.\.\.+")
_NOT_PLAIN = re.compile(r"[%\\&][^%\\&]{0,24}|['\"]+|\s\s+")
"""What may stand for a single character, or for none."""
_NEAR = 16
_LEGIBLE = re.compile("[^\0-\x08\x0e-\x1f\x7f-\x9f\ud800-\udfff]{7,}")
"""No secret is looked for in base64 that takes less, with an escape in it."""
SHORT = 2_000
"""A text with no more characters is read as a whole."""


@dataclass(frozen=True, slots=True)
class Clues:
    """What to look for, for some declared secrets."""

    words: tuple[tuple[str, frozenset[str]], ...] = ()
    """For each secret its longest word; and all its words, which stand near it unless one is escaped."""
    ends: tuple[_End, ...] = ()
    """The beginning and the end of each: what is left of one that was cut."""
    quoted: re.Pattern[str] | None = None
    """What is too short to be looked for but in quotes."""
    longest: int = LONGEST_OWN
    """Characters of the longest secret."""
    packed: tuple[str, ...] = OWN_PACKED
    """The longest words as base64."""


_WORD = re.compile("[A-Za-z0-9]+")


@dataclass(frozen=True, slots=True)
class _End:
    """The beginning or the end of a secret: its words, in order."""

    words: tuple[str, ...]
    after: str
    """What may stand after the first word."""
    longest: int
    """Characters that all of it takes, where no letter is escaped."""

    def stands_in(self, text: str) -> bool:
        first, *others = self.words
        for at in _everywhere(text, first):
            end = at + len(first)
            if others and text[end : end + 1] not in self.after:
                continue
            for word in others:
                end = text.find(word, end, at + self.longest)
                if end < 0:
                    break
            else:
                return True
        return False


_SPELLED = "%\\&'\"+"
"""What a character begins with that is neither a letter nor a digit, and is not written as it is."""
_LONGEST_SPELLED = 40


def _end(part: str) -> _End | None:
    words = tuple(_WORD.findall(part))
    if max(map(len, words), default=0) < 3:
        return None
    start = part.index(words[0]) + len(words[0])
    after = part[start : start + 1]
    after += after.encode("utf-8", "surrogatepass").decode("latin-1")[:1]
    return _End(words, after + _SPELLED, len(part) * _LONGEST_SPELLED)


def clues(short: Collection[str], long: Sequence[str], cut: Iterable[str]) -> Clues | None:
    """The clues to some secrets, and to what may be left of one when it is cut. None: there are none."""
    words = {one: frozenset(_WORD.findall(one)) for one in long}
    ends = dict.fromkeys(map(_end, cut))
    main = tuple((max(found, key=len, default=""), found) for found in words.values())
    if any(len(word) < 3 for word, _ in main) or None in ends:
        return None
    quoted = "|".join(map(re.escape, sorted(short)))
    return Clues(
        words=main,
        ends=tuple(one for one in ends if one is not None),
        quoted=re.compile(rf"(?<=['\"`;0-9])(?:{quoted})(?=['\"`\\%&])") if quoted else None,
        longest=max(LONGEST_OWN, *map(len, long)) if long else LONGEST_OWN,
        packed=(*OWN_PACKED, *_packed(word for word, _ in main)),
    )


def readings(text: str, clues: Clues | None, is_promising: Callable[[str], bool]) -> Iterator[tuple[Unescaped, int]]:
    """Yield a text, and what those parts of it may mean in which a secret may hide; and where each part begins."""
    if clues is None or len(text) <= SHORT:
        yield from ((one, 0) for one in unescaped(text, is_promising))
        return
    yield Unescaped(text=text, whole=text), 0
    for start, end in hiding_places(text, clues):
        # A part ends where the text does only if nothing says otherwise: most of a secret is found there.
        before, after = "\0" if start else "", "\0" if end < len(text) else ""
        part = f"{before}{text[start:end]}{after}"
        yield from ((one, start - len(before)) for one in unescaped(part, is_promising, is_part=start > 0))


def hiding_places(text: str, clues: Clues) -> list[tuple[int, int]]:
    """The parts of a text in which one may stand in another spelling, in order."""
    reach = _Reach(text, clues.longest)
    found = [reach.around(*span) for span in _merged(_anchors(text, clues, reach), LONGEST_OWN)]
    found += (part for part in _cut(text, clues, reach) if _has_end(text[slice(*part)], clues))
    return _merged(found)


def _anchors(text: str, clues: Clues, reach: _Reach) -> Iterator[tuple[int, int]]:
    yield from (match.span() for match in LOOSE.finditer(text))
    yield from (match.span() for match in OWN_CLUE.finditer(text))
    yield from (match.span() for match in clues.quoted.finditer(text)) if clues.quoted is not None else ()
    for word, words in dict.fromkeys(clues.words):
        for at in _everywhere(text, word) if all(one in text for one in words) else ():
            start, end = reach.around(at, at + len(word))
            part = text[start:end]
            if all(one in part for one in words):
                yield at, at + len(word)
    for word in clues.packed:
        yield from ((at, at + len(word)) for at in _everywhere(text, word))
    for at in _in_base64(text, clues):
        yield at, at


def _in_base64(text: str, clues: Clues, levels: int = DEPTH) -> Iterator[int]:
    """Where something stands in base64 that is a clue."""
    for raw, place in _unpacked(text):
        for word in {word for word, _ in clues.words}.union(clues.packed):
            yield from map(place, _everywhere(raw, word))
        yield from (place(match.start()) for match in OWN_CLUE.finditer(raw))
        yield from (place(match.start()) for match in LOOSE.finditer(raw) if _is_legible(raw, match.start()))
        if levels > 1:
            yield from map(place, _in_base64(raw, clues, levels - 1))


def _is_legible(raw: str, at: int) -> bool:
    """Whether text stands at a place of what base64 says, and no noise."""
    near = raw[max(0, at - _NEAR) : at + _NEAR].encode("latin-1").decode("utf-8", "surrogateescape")
    return any(LOOSE.search(match[0]) for match in _LEGIBLE.finditer(near))


def _unpacked(text: str) -> Iterator[tuple[str, Callable[[int], int]]]:
    """Yield what the base64 in a text says, each byte as a character, and what tells where in the text one stands."""
    joined = b"".join(_long_words(text.encode("latin-1", "replace").translate(_STANDARD)))
    if not joined:
        return
    runs: list[tuple[int, int]] = []
    begins: list[int] = []

    def place(phase: int, at: int) -> int:
        if not runs:  # few are asked for
            runs.extend(match.span() for match in runs_in(text))
            begins.extend(accumulate((end - start for start, end in runs), initial=0))
        first = phase + at * 4 // 3
        run = bisect_right(begins, first, hi=len(runs)) - 1
        return runs[run][0] + first - begins[run]

    for phase in range(4):
        part = joined[phase : len(joined) - ((len(joined) - phase) % 4 == 1)]
        raw = a2b_base64(part + b"=" * (-len(part) % 4)).decode("latin-1")
        yield raw, lambda at, phase=phase: place(phase, at)


_ALPHABET = f"{ascii_letters}{digits}+/".encode()
_STANDARD = bytes({0x2D: 0x2B, 0x5F: 0x2F}.get(byte, byte if byte in _ALPHABET else 0x20) for byte in range(256))
"""The usual alphabet of base64. Anything else becomes a blank."""


def _long_words(text: bytes) -> Iterator[bytes]:
    start = 0
    while start < len(text):
        end = text.find(b" ", start + PIECE) + 1 or len(text)
        yield from (word for word in text[start:end].split() if len(word) >= SHORTEST_RUN)
        start = end


def _cut(text: str, clues: Clues, reach: _Reach) -> list[tuple[int, int]]:
    """The parts of a text in which a secret may be cut."""
    if not clues.ends:
        return []
    spans = _merged(((0, 0), *_dots(text), (len(text), len(text))), LONGEST_OWN)
    return _merged(reach.around(*span) for span in spans)


def _dots(text: str) -> Iterator[tuple[int, int]]:
    return (match.span() for match in _DOTS.finditer(text)) if "…" in text or "..." in text else iter(())


def _has_end(part: str, clues: Clues) -> bool:
    told = [part]
    for raw, _ in _unpacked(part):
        told += raw, *(inner for inner, _ in _unpacked(raw))
    return any(end.stands_in(one) for end in clues.ends for one in told)


class _Reach:
    """How far a secret reaches around a place in a text, if it is spelled with as many characters as can be."""

    def __init__(self, text: str, longest: int) -> None:
        self._text = text
        self._need = 2 * longest + 40  # twice base64, with a blank between any eight characters
        self._begins: list[int] = []
        self._plain: list[int] = []

    def around(self, start: int, end: int) -> tuple[int, int]:
        """As much on each side as has in it the longest secret."""
        near = 2 * self._need
        left, right = max(0, start - near), min(len(self._text), end + near)
        if left and self._is_short(left, start):
            left = self._at(self._before(start) - self._need)
        if right < len(self._text) and self._is_short(end, right):
            right = self._at(self._before(end) + self._need)
        return left, right

    def _is_short(self, start: int, end: int) -> bool:
        return len(_NOT_PLAIN.sub("", self._text[start:end])) < self._need

    def _count(self) -> None:
        """Count the characters that stand for one each: once, in a text that has many others."""
        begins, plain, at, count = [0], [0], 0, 0
        for match in _NOT_PLAIN.finditer(self._text):
            count += match.start() - at
            at = match.end()
            begins.append(at)
            plain.append(count)
        begins.append(len(self._text))
        plain.append(count + len(self._text) - at)
        self._begins, self._plain = begins, plain

    def _before(self, at: int) -> int:
        if not self._begins:
            self._count()
        one = bisect_right(self._begins, at, hi=len(self._begins) - 1) - 1
        return min(self._plain[one] + at - self._begins[one], self._plain[one + 1])

    def _at(self, count: int) -> int:
        if count <= 0 or count >= self._plain[-1]:
            return 0 if count <= 0 else len(self._text)
        one = bisect_right(self._plain, count, hi=len(self._plain) - 1) - 1
        return self._begins[one] + count - self._plain[one]


def _packed(words: Iterable[str]) -> Iterator[str]:
    for word in dict.fromkeys(words):
        yield from dict.fromkeys(inside_base64(word.encode()))


def _everywhere(text: str, part: str) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def _merged(parts: Iterable[tuple[int, int]], gap: int = 0) -> list[tuple[int, int]]:
    """Parts in order; those with no more than a gap between them are one."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(parts):
        if merged and start <= merged[-1][1] + gap:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
