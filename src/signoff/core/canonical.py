"""Canonical JSON (RFC 8785) and digests: one text per value, however it was spelled.

Key order, `1` or `1.0` or `1e0`, and escapes do not matter; types do (`true` is not `1`, `"1"` is not `1`).
RFC 8785 only has numbers that a double can hold. An integer beyond that is written with a trailing `n`, like a
JavaScript BigInt literal, so that it never collides with the text of a double.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from json.encoder import encode_basestring
from typing import Any, TypeAlias, cast

from signoff.core.json_text import writer
from signoff.core.normal_form import normal_form
from signoff.errors import CannotCanonicalise

Json: TypeAlias = "None | bool | int | float | str | Sequence[Json] | Mapping[str, Json]"

_SAFE_INT = 2**53
_DEEPEST = 100
_plain_text = writer(ensure_ascii=False, sort_keys=True)
_quote = encode_basestring


def canonical(value: object) -> str:
    """The canonical JSON of `value`; raises `CannotCanonicalise` if there is none."""
    text = _plain_text(value) if _is_plain(value, 0) else _text(value, 0)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise CannotCanonicalise("a text holds half of a surrogate pair, which is not Unicode") from error
    return text


def digest(value: object) -> str:
    """SHA-256 of the canonical text, in hexadecimal."""
    return digest_of(canonical(value))


def digest_of(text: str) -> str:
    """SHA-256 of a text that is canonical already, in hexadecimal."""
    return sha256(text.encode()).hexdigest()


def same_form(value: object) -> Any:
    """Normalize every text in `value` to Unicode NFC, so that two spellings that look alike become equal."""
    if isinstance(value, str):
        return value if value.isascii() else _composed(value)
    if isinstance(value, Mapping):
        items = cast("Mapping[str, object]", value)
        formed = {same_form(key): same_form(item) for key, item in items.items()}
        if len(formed) != len(items):
            raise CannotCanonicalise("two keys differ only in their Unicode form")
        return formed
    if isinstance(value, (list, tuple)):
        return [same_form(item) for item in cast("Sequence[object]", value)]
    return value


def _composed(text: str) -> str:
    """Normalize to NFC, except characters that would become another one: the Greek question mark is no semicolon."""
    if unicodedata.is_normalized("NFC", text):
        return text
    return normal_form("NFC", text, kept="".join(filter(_becomes_another, set(text))))


@lru_cache(maxsize=4096)
def _becomes_another(char: str) -> bool:
    meaning = unicodedata.decomposition(char)
    return bool(meaning) and " " not in meaning and "<" not in meaning


def _is_plain(value: object, depth: int) -> bool:
    """Whether the C encoder's text of an object or an array is canonical: no doubles, no large integers, ASCII keys."""
    kind = type(value)
    if depth > _DEEPEST:
        return False
    if kind is dict:
        for key in cast("dict[object, object]", value):
            if type(key) is not str or not key.isascii():
                return False
        items = cast("dict[str, object]", value).values()
    elif kind is list:
        items = cast("list[object]", value)
    else:
        return False
    for item in items:
        kind = type(item)
        if kind is str or kind is bool or item is None:
            continue
        if kind is int:
            if not -_SAFE_INT <= cast("int", item) <= _SAFE_INT:
                return False
        elif not _is_plain(item, depth + 1):
            return False
    return True


def _text(value: object, depth: int) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _quote(str(value))
    if isinstance(value, int):
        return _integer(int(value))
    if isinstance(value, float):
        return _double(float(value))
    if depth > _DEEPEST:
        raise CannotCanonicalise(f"the value is nested more than {_DEEPEST} deep")
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value)
        if not all(isinstance(key, str) for key in items):
            raise CannotCanonicalise("an object has a key that is not a text")
        ordered = sorted(cast("Mapping[str, object]", value).items(), key=lambda item: _utf16(item[0]))
        return "{" + ",".join(f"{_quote(key)}:{_text(item, depth + 1)}" for key, item in ordered) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(_text(item, depth + 1) for item in cast("Sequence[object]", value)) + "]"
    raise CannotCanonicalise(f"{type(value).__name__} is not a JSON type")


def _utf16(key: str) -> bytes:
    try:
        return key.encode("utf-16-be")
    except UnicodeEncodeError as error:
        raise CannotCanonicalise("a key holds half of a surrogate pair, which is not Unicode") from error


def _integer(value: int) -> str:
    if -_SAFE_INT <= value <= _SAFE_INT:
        return str(value)
    try:
        double = float(value)
    except OverflowError:
        return f"{_digits(value)}n"
    return _double(double) if int(double) == value else f"{_digits(value)}n"


def _digits(value: int) -> str:
    try:
        return str(value)
    except ValueError as error:  # Python refuses to print integers of more than 4,300 digits
        raise CannotCanonicalise("an integer is too long to be written down") from error


def _double(value: float) -> str:
    """A double as ECMAScript writes it: the same shortest digits as Python's, in another layout."""
    if not math.isfinite(value):
        raise CannotCanonicalise(f"{value} is not a JSON number")
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = f"{abs(value)!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    count = len(digits)
    if count <= point <= 21:
        return sign + digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    power = f"e{'+' if point > 0 else '-'}{abs(point - 1)}"
    return f"{sign}{digits[0]}{'.' + digits[1:] if count > 1 else ''}{power}"
