"""Find declared secrets in a text, whole or truncated. How the text is spelled is undone in `unescaped`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from signoff.core.credential import without_password
from signoff.core.hiding_places import Clues, clues
from signoff.core.normal_form import normal_form
from signoff.core.unescaped import LOOSE, SHORTEST_PACKED, Unescaped, marks

SHORTEST = 4
"""A shorter secret is recognised only where it is the whole text, or stands in quotes."""
LONG = 8
"""Characters that a line of a secret, or the rest of a truncated one, must have to be recognised."""
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/{0,2}")
_WORD = re.compile("[A-Za-z0-9]+")
_DOTS = ("…", "...")
_QUOTES = "'\"`"
_REST = r"(?:[\\%&'\"][\w\\%&#'\"{]{0,11}|[\w+/-]{0,3})"
"""What may be left of an escape, or of three bytes in base64, where a text is cut."""
_CUT_AFTER = re.compile(rf"{_REST}(?:…|\.\.\.|\Z)")
_CUT_BEFORE = re.compile(r"(?:…|\.\.\.|\A)[\w\\%&#;'\"+/{}-]{0,12}\Z")


def in_headers(headers: Mapping[str, str]) -> tuple[str, ...]:
    """The secrets in the headers of requests: each value, and what follows its scheme, as in `Bearer …`."""
    return tuple(one for value in headers.values() for one in (value, value.partition(" ")[2].strip()) if one)


@dataclass(frozen=True, slots=True)
class DeclaredSecrets:
    """Some secrets, to be found in texts. Create it with `declared`, which keeps the latest."""

    short: frozenset[str]
    long: tuple[str, ...]
    """What is searched for: the secrets, and what else of them must not be seen."""
    spaced: tuple[str, ...]
    """Those of them with a blank."""
    marks: frozenset[str]
    """One of them stands in every text with a long one or an end of one, unless the text is `LOOSE`. Empty: unknown."""
    clues: Clues | None
    """What to look for in a long text. None: unknown."""

    def spans(self, one: Unescaped) -> Iterator[tuple[int, int]]:
        """Yield where a secret stands in what was read, as (start, end). Spans may overlap."""
        for start, end in self._within(one):
            if (span := one.origin(start, end)) is not None:
                yield span

    def may_stand_in(self, text: str) -> bool:
        """Whether one, or an end of one, may stand in a text otherwise than as it is."""
        if any(secret in text for secret in self.short):
            return True
        marks = self.marks
        return bool(self.long) and (not marks or any(mark in text for mark in marks) or LOOSE.search(text) is not None)

    def begun(self, one: Unescaped) -> tuple[int, int] | None:
        """The end of what was read, from where the earliest secret with a blank in it may have begun there."""
        text = one.text
        found = len(text)
        for secret in () if one.packed else self.spaced:
            tail = max(0, len(text) - len(secret) + 1)
            found = next((at for at in range(tail, found) if secret.startswith(text[at:])), found)
        return one.origin(found, len(text)) if found < len(text) else None

    def _within(self, one: Unescaped) -> Iterator[tuple[int, int]]:
        if self.short and not one.packed:
            yield from self._short(one.text)
        has_dots = any(dots in one.whole for dots in _DOTS)
        for secret in self.long:
            if one.packed and len(secret.encode("utf-8", "surrogatepass")) < SHORTEST_PACKED:
                continue
            yield from _everywhere(one.text, secret)
            if len(secret) > LONG:
                yield from _begun(one, secret, has_dots)
                yield from _ended(one, secret, has_dots)

    def _short(self, text: str) -> Iterator[tuple[int, int]]:
        if text in self.short:
            yield 0, len(text)
        for secret in self.short:
            for mark in _QUOTES:
                for start, end in _everywhere(text, f"{mark}{secret}{mark}"):
                    yield start + 1, end - 1


@lru_cache(maxsize=64)
def declared(secrets: tuple[str, ...]) -> DeclaredSecrets:
    """These secrets, to be found in texts."""
    told = [secret for secret in secrets if secret.strip()]
    found = {form for secret in told if len(secret) >= SHORTEST for form in _forms(secret)}
    long = tuple(sorted(form for form in found if len(form) >= SHORTEST))
    words = {max(_WORD.findall(part), key=len, default="") for one in long for part in (one, one[:LONG], one[-LONG:])}
    short = frozenset(secret for secret in told if len(secret) < SHORTEST)
    cut = [part for one in long if len(one) > LONG for part in (one[: _least(one)], one[-LONG:])]
    return DeclaredSecrets(
        short=short,
        long=long,
        spaced=tuple(one for one in long if any(map(str.isspace, one))),
        marks=marks(words) if all(len(word) > 2 for word in words) else frozenset(),
        clues=clues(short, long, cut),
    )


def _forms(secret: str) -> Iterator[str]:
    """Yield a secret and each long line of it; as a URL is shown without its password; as Unicode is normalised."""
    for one in (secret, *(line for line in secret.splitlines() if len(line) >= LONG)):
        yield from (one, without_password(one))
        yield from (normal_form("NFC", one), normal_form("NFD", one))


def _everywhere(text: str, part: str, start: int = 0) -> Iterator[tuple[int, int]]:
    start = text.find(part, start)
    while start >= 0:
        yield start, start + len(part)
        start = text.find(part, start + len(part))


def _begun(one: Unescaped, secret: str, has_dots: bool) -> Iterator[tuple[int, int]]:
    """Yield where the beginning of a secret stands before an ellipsis, or most of it where the whole text ends."""
    text = one.text
    least = _least(secret)
    for start, end in _everywhere(text, secret[:least], 0 if has_dots else max(0, len(text) - len(secret))):
        size = least + _in_common(text[end : start + len(secret)], secret[least:])
        if size < len(secret) and _is_cut_after(one, start, size, secret):
            yield start, start + size


def _least(secret: str) -> int:
    """Characters that the beginning of a secret must have to be recognised: the scheme of a URL is no secret."""
    scheme = _SCHEME.match(secret)
    return max(LONG, (scheme.end() if scheme is not None else 0) + 1)


def _is_cut_after(one: Unescaped, start: int, size: int, secret: str) -> bool:
    # A secret may have dots itself, where the ellipsis begins.
    if any(one.text.startswith(_DOTS, start + size - dots) for dots in range(3)):
        return True
    span = one.origin(start, start + size)
    if span is None:
        return False
    is_escaped = one.text is not one.whole
    if not is_escaped and span[1] < len(one.whole):
        return False
    cut = _CUT_AFTER.match(one.whole, span[1])
    if cut is None:
        return False
    is_broken = one.packed or cut[0][:1] in {"\\", "%", "&"}
    return cut[0].endswith(_DOTS) or (
        2 * size >= len(secret) and (is_broken or (not cut[0] and _is_word(secret, size)))
    )


def _ended(one: Unescaped, secret: str, has_dots: bool) -> Iterator[tuple[int, int]]:
    """Yield where the end of a secret stands after an ellipsis, or most of it where the whole text begins."""
    text = one.text
    for start, end in _everywhere(text if has_dots else text[: len(secret)], secret[-LONG:]):
        before = text[max(0, end - len(secret)) : start]
        size = LONG + _in_common(before[::-1], secret[-LONG - 1 :: -1])
        if size < len(secret) and _is_cut_before(one, end, size, secret):
            yield end - size, end


def _is_cut_before(one: Unescaped, end: int, size: int, secret: str) -> bool:
    if any(one.text.endswith(_DOTS, 0, end - size + dots) for dots in range(3)):
        return True
    span = one.origin(end - size, end)
    if span is None:
        return False
    is_escaped = one.text is not one.whole
    if not is_escaped and span[0] > 0:
        return False
    begin = max(0, span[0] - 15)
    cut = _CUT_BEFORE.search(one.whole[begin : span[0]])
    if cut is None or (begin > 0 and not cut[0].startswith(_DOTS)):
        return False
    is_broken = one.packed and len(cut[0]) < 4
    return cut[0].startswith(_DOTS) or (
        2 * size >= len(secret) and (is_broken or (not cut[0] and _is_word(secret, -size)))
    )


def _is_word(secret: str, at: int) -> bool:
    """Whether a cut here is within a word: a text that ends before a separator is whole, such as a path above."""
    return secret[at - 1].isalnum() and secret[at].isalnum()


def _in_common(text: str, other: str) -> int:
    """How many characters both begin with."""
    pairs = enumerate(zip(text, other, strict=False))
    return next((size for size, (one, two) in pairs if one != two), min(len(text), len(other)))
