"""Strict JSON parsing of what others wrote: no key given twice, no NaN or Infinity; for programs also a size limit.

Of a key that is given twice, one reader takes the first value and another the last: then what was shown is not what
runs.
"""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from typing import Any, cast

MOST_BYTES = 1024 * 1024
_LONGEST_SHOWN = 40
"""How many characters of the input an error message shows."""


def read_object(text: bytes, *, what: str, most: int = MOST_BYTES, exact: bool = False) -> dict[str, Any]:
    """Parse an object. Raises `ValueError` with the reason.

    With `exact`, a number with more digits than a float keeps is an error too.
    """
    if len(text) > most:
        raise ValueError(f"{what} is larger than {most} bytes")
    try:
        value = read_json(text.decode("utf-8"), exact=exact)
    except RecursionError as error:
        raise ValueError(f"{what} is nested too deeply") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{what} is not UTF-8: {error.reason} at byte {error.start}") from error
    except json.JSONDecodeError as error:
        raise ValueError(f"{what} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ValueError(f"{what} should be a JSON object")
    return cast("dict[str, Any]", value)


def read_json(text: str, *, exact: bool = False) -> Any:
    """Parse any value. Raises what `json.loads` raises, and `ValueError` for a key that is given twice."""
    return json.loads(text, object_pairs_hook=_once, parse_constant=_constant, parse_float=_exactly if exact else None)


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
        raise ValueError(f"the number {text[:_LONGEST_SHOWN]} has more digits than can be kept; send it as a text")
    return value
