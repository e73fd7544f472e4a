"""Write a rule as lines of a file: YAML that every reader parses to the same values.

It is JSON, except for words that need no quotes. Characters that are not printable are escaped, so that the lines on
a screen are the lines in the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from signoff.policy.scalar import Ambiguous, plain_scalar

WIDEST = 100
"""The longest line: a longer mapping or list is written over several lines."""

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:[./-]+[A-Za-z0-9_]+)*")
_LONGEST_PLAIN = 80


def rule_lines(rule: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the lines of a rule for a block list, starting with the dash; not indented, without line breaks."""
    lines = [line for key, value in rule.items() for line in _entry(key, value)]
    return tuple(f"{'  ' if at else '- '}{line}" for at, line in enumerate(lines))


def _entry(key: str, value: Any) -> Iterator[str]:
    whole = f"{flow_text(key)}: {flow_text(value)}"
    if len(whole) <= WIDEST or not isinstance(value, (Mapping, list)) or not value:
        yield whole
        return
    yield f"{flow_text(key)}:"
    if isinstance(value, Mapping):
        for name, item in cast("Mapping[str, Any]", value).items():
            yield from (f"  {line}" for line in _entry(name, item))
    else:
        yield from (f"  - {flow_text(item)}" for item in cast("list[Any]", value))


def flow_text(value: Any) -> str:
    """Return a JSON value on one line, valid anywhere in YAML."""
    if isinstance(value, str):
        return value if _is_plain(value) else _quoted(value)
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value).items()
        return f"{{{', '.join(f'{flow_text(key)}: {flow_text(item)}' for key, item in items)}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(flow_text, cast('Sequence[Any]', value)))}]"
    return json.dumps(value, allow_nan=False)


def _is_plain(text: str) -> bool:
    with suppress(Ambiguous):
        return len(text) <= _LONGEST_PLAIN and bool(_PLAIN.fullmatch(text)) and plain_scalar(text) == text
    return False


def _quoted(text: str) -> str:
    return "".join(one if one.isprintable() else _escaped(one) for one in json.dumps(text, ensure_ascii=False))


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
