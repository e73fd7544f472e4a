"""Find declared secrets in a text, however they are quoted, escaped, encoded or truncated there.

The work grows linearly with the text, whatever is in it: each form of a secret is searched for twice at most.
"""

from __future__ import annotations

import html
import json
import re
import shlex
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote, quote_plus

SHORTEST = 4
"""A shorter secret is recognised only where it is the whole text, or stands in quotes."""
LONG = 8
"""Characters that a line of a secret, or the rest of a truncated one, must have to be recognised."""
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/{0,2}")
_PASSWORD = re.compile(r"(?<=://)([^/?#@:]*):.*@", re.DOTALL)
_ESCAPE = re.compile(r"%[0-9A-F]{2}")
_DOTS = ("…", "...")
_QUOTES = "'\"`"


def in_headers(headers: Mapping[str, str]) -> tuple[str, ...]:
    """The secrets in the headers of requests: each value, and what follows its scheme, as in `Bearer …`."""
    return tuple(one for value in headers.values() for one in (value, value.partition(" ")[2].strip()) if one)


@dataclass(frozen=True, slots=True)
class DeclaredSecrets:
    """All forms of some secrets. Create it with `declared`, which keeps the latest."""

    short: frozenset[str]
    forms: tuple[str, ...]

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield where a secret stands, as (start, end). Spans may overlap."""
        if self.short:
            yield from self._short(text)
        is_cut = any(dots in text for dots in _DOTS)
        for form in self.forms:
            yield from _everywhere(text, form)
            if is_cut and len(form) > LONG:
                yield from _begun(text, form)
                yield from _ended(text, form)

    def _short(self, text: str) -> Iterator[tuple[int, int]]:
        if text in self.short:
            yield 0, len(text)
        for secret in self.short:
            for mark in _QUOTES:
                for start, end in _everywhere(text, f"{mark}{secret}{mark}"):
                    yield start + 1, end - 1


@lru_cache(maxsize=64)
def declared(secrets: tuple[str, ...]) -> DeclaredSecrets:
    """All forms of these secrets."""
    told = [secret for secret in secrets if secret.strip()]
    long = {form for secret in told if len(secret) >= SHORTEST for form in _forms(secret)}
    return DeclaredSecrets(
        short=frozenset(secret for secret in told if len(secret) < SHORTEST),
        forms=tuple(sorted(form for form in long if len(form) >= SHORTEST)),
    )


def _everywhere(text: str, form: str) -> Iterator[tuple[int, int]]:
    start = text.find(form)
    while start >= 0:
        yield start, start + len(form)
        start = text.find(form, start + len(form))


def _begun(text: str, form: str) -> Iterator[tuple[int, int]]:
    """Yield where the beginning of a form stands before an ellipsis."""
    scheme = _SCHEME.match(form)
    least = max(LONG, (scheme.end() if scheme is not None else 0) + 1)  # the scheme of a URL is no secret
    for start, end in _everywhere(text, form[:least]):
        size = least + _in_common(text[end : start + len(form)], form[least:])
        # A secret may have dots itself, where the ellipsis begins.
        if any(text.startswith(_DOTS, start + size - dots) for dots in range(3)):
            yield start, start + size


def _ended(text: str, form: str) -> Iterator[tuple[int, int]]:
    """Yield where the end of a form stands after an ellipsis."""
    for start, end in _everywhere(text, form[-LONG:]):
        before = text[max(0, end - len(form)) : start]
        size = LONG + _in_common(before[::-1], form[-LONG - 1 :: -1])
        if any(text.endswith(_DOTS, 0, end - size + dots) for dots in range(3)):
            yield end - size, end


def _in_common(text: str, form: str) -> int:
    """How many characters both begin with."""
    pairs = enumerate(zip(text, form, strict=False))
    return next((size for size, (one, other) in pairs if one != other), min(len(text), len(form)))


def _forms(secret: str) -> Iterator[str]:
    """Yield a secret and each long line of it: as it is, and as it is escaped and encoded elsewhere."""
    for one in {secret, *(line for line in secret.splitlines() if len(line) >= LONG)}:
        raw = one.encode("utf-8", "surrogatepass")
        yield one
        yield _PASSWORD.sub(r"\1:…@", one)  # a URL as it is shown elsewhere, without its password
        yield repr(raw)[2:-1]
        for spelled in (repr, ascii):
            yield spelled(one)[1:-1]
            yield spelled(f"{one}'\"")[1:-4]  # if the text has quotes of both kinds, repr escapes them
        yield from (json.dumps(one)[1:-1], json.dumps(one, ensure_ascii=False)[1:-1])
        yield from (shlex.quote(one), one.encode("unicode_escape").decode("ascii"), html.escape(one))
        for escaped in (quote(raw, safe=""), quote(raw), quote_plus(raw)):
            yield escaped
            yield _ESCAPE.sub(lambda code: code[0].lower(), escaped)
        yield from _in_base64(raw)


def _in_base64(raw: bytes) -> Iterator[str]:
    """Yield what is the same in the base64 of every longer text with this in it: it may start at three places."""
    for before in range(3):
        known = slice((before * 8 + 5) // 6, (before + len(raw)) * 8 // 6)
        for encode in (b64encode, urlsafe_b64encode):
            form = encode(bytes(before) + raw).decode()[known]
            if len(form) >= LONG:
                yield form
