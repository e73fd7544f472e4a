"""Parse plain YAML scalars into JSON values, without the surprises of YAML 1.1.

`no`, `0755`, `1:30` and `1_000` mean one thing in YAML 1.1 and another to most readers. They are refused, not guessed.
Dates stay texts, because a tool's arguments are JSON and JSON has no dates.
"""

from __future__ import annotations

import math
import re
from typing import TypeAlias

Scalar: TypeAlias = "bool | int | float | str | None"

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOL = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_YES_NO = {"yes": "true", "on": "true", "no": "false", "off": "false"}
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?")
_ODD_NUMBER = re.compile(
    r"""[-+]?(?: 0[0-9_]+ | 0[xX][0-9a-fA-F_]+ | 0[oO][0-7_]+ | 0[bB][01_]+   # 0755, 0x1f, 0o17, 0b11
      | [0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?                            # 1:30
      | [0-9]+(?:_[0-9]+)+(?:\.[0-9_]*)?                                       # 1_000
      | \.(?:inf|Inf|INF) ) | \.(?:nan|NaN|NAN)""",
    re.VERBOSE,
)


class Ambiguous(ValueError):
    """A plain scalar that YAML readers understand differently. `fix` says how to write it."""

    def __init__(self, what: str, fix: str) -> None:
        self.what = what
        self.fix = fix
        super().__init__(what)


def plain_scalar(text: str) -> Scalar:
    """Return the JSON value of an unquoted scalar. Raises `Ambiguous` if there is no single one."""
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    if text.lower() in _YES_NO:
        meant = _YES_NO[text.lower()]
        raise Ambiguous(
            f"`{text}` is {meant} for some YAML readers and a word for others",
            f'write `{meant}`, or "{text}" in quotes',
        )
    if _INT.fullmatch(text):
        return _integer(text)
    if _FLOAT.fullmatch(text):
        return _double(text)
    if _ODD_NUMBER.fullmatch(text):
        raise Ambiguous(
            f"`{text}` is a number for some YAML readers and a text for others",
            f'write it as a plain decimal number, or "{text}" in quotes',
        )
    if text == "<<":
        raise Ambiguous("`<<` (merging mappings) is not supported", "write the keys out")
    return text


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise Ambiguous("the number is too long", "write it in quotes if it is meant as a text") from error


def _double(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise Ambiguous(f"`{text[:40]}` is too large for a number", "write it in quotes if it is meant as a text")
    return value
