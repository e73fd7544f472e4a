"""Strict JSON parsing of what others wrote: no key given twice, no NaN or Infinity; for programs also a size limit.

Of a key that is given twice, one reader takes the first value and another the last: then what was shown is not what
runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any, cast

MOST_BYTES = 1024 * 1024
MOST_LEVELS = 64
"""How deep what others send may be nested."""
MOST_PARTS = 10_000
"""How many names and values there may be in it: each is judged, masked and shown by itself."""
_LONGEST_SHOWN = 40
"""How many characters of the input an error message shows."""


_MANY = f"more than {MOST_PARTS:,} names and values"


class TooManyParts(ValueError):
    """There are more than `MOST_PARTS` names and values."""

    def __init__(self) -> None:
        super().__init__(_MANY)


def read_object(
    text: bytes, *, what: str, most: int = MOST_BYTES, exact: bool = False, bounded: bool = False
) -> dict[str, Any]:
    """Parse an object. Raises `ValueError` with the reason.

    With `exact`, a decimal number that no float keeps is an error too. For `bounded` see `read_json`.
    """
    if len(text) > most:
        raise ValueError(f"{what} is larger than {most} bytes")
    try:
        value = read_json(text.decode("utf-8"), exact=exact, bounded=bounded)
    except RecursionError as error:
        raise ValueError(f"{what} is nested too deeply") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{what} is not UTF-8: {error.reason} at byte {error.start}") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"{what} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ValueError(f"{what} should be a JSON object")
    return cast("dict[str, Any]", value)


def read_json(text: str, *, exact: bool = False, bounded: bool = False) -> Any:
    """Parse any value. Raises what `json.loads` raises, and `ValueError` for a key that is given twice.

    With `bounded`, raises `TooManyParts` as soon as there are more than `MOST_PARTS` names and values.
    """
    read_float = _exactly if exact else float
    if not bounded:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_constant, parse_float=read_float)
    left = MOST_PARTS

    def counted(read: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Count what Python is called for: the rest takes little time, and is counted when all is read."""

        def read_one(part: Any) -> Any:
            nonlocal left
            left -= len(part) if isinstance(part, list) else 1  # pyright: ignore[reportUnknownArgumentType]
            if left < 0:
                raise TooManyParts
            return read(part)

        return read_one

    value = json.loads(
        text, object_pairs_hook=counted(_once), parse_constant=_constant, parse_float=counted(read_float)
    )
    if why_too_large(value) == _MANY:
        raise TooManyParts
    return value


def why_too_large(value: object) -> str:
    """Return what a JSON value has more of than others may send, as `more than …`; "" if it is not too large."""
    count, characters, parts = 0, 0, [value]
    while parts:
        part = parts.pop()
        count += 1
        if isinstance(part, str):
            characters += len(part)
        elif isinstance(part, dict):
            inner = cast("dict[str, object]", part)
            count += len(inner)
            characters += sum(map(len, inner))
            parts.extend(inner.values())
        elif isinstance(part, list):
            items = cast("list[object]", part)
            if len(items) > MOST_PARTS:
                return _MANY
            parts.extend(items)
        if count > MOST_PARTS:
            return _MANY
    return f"more than {MOST_BYTES:,} characters" if characters > MOST_BYTES else ""


def is_deeper(value: object, levels: int = MOST_LEVELS) -> bool:
    """Whether a JSON value is nested deeper than so many levels, which is more than recursive code can follow."""
    level = [value]
    for _ in range(levels):
        inner: list[object] = []
        for one in level:
            if isinstance(one, dict):
                inner.extend(cast("dict[str, object]", one).values())
            elif isinstance(one, list):
                inner.extend(cast("list[object]", one))
        level = inner
    return any(isinstance(one, dict | list) for one in level)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen = set[str]()
        doubled = next(name for name, _ in pairs if name in seen or seen.add(name))
        raise ValueError(f"the key {json.dumps(doubled[:_LONGEST_SHOWN])} is given twice")
    return found


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _exactly(text: str) -> float:
    value = float(text)
    try:
        is_kept = Decimal(text) == Decimal(repr(value))
    except InvalidOperation:  # an exponent out of range of Decimal
        is_kept = False
    if not is_kept:
        raise ValueError(f"the number {text[:_LONGEST_SHOWN]} cannot be kept exactly; send it as a text")
    return value
