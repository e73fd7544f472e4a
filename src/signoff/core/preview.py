"""What a call would change, as text: a unified diff, or whatever the tool says about it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

_CONTEXT = 3
# Beyond this many pairs of lines, finding the smallest difference takes too long: the whole is shown as replaced.
_MOST_PAIRS = 4_000_000

_Change = tuple[str, int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """A text that shows the effect of a call before it happens."""

    kind: Literal["diff", "text"]
    text: str
    added: int = 0
    """Lines added, where it is a diff."""
    removed: int = 0


def unified_diff(before: str, after: str, path: str = "") -> Preview:
    """The difference of two texts. Nothing that differs is left out, down to a missing line break at the end."""
    old, new = _lines(before), _lines(after)
    name = path if path.isprintable() else json.dumps(path)
    hunks = list(_hunks(old, new))
    head = [f"--- {f'a/{name}' if name else 'before'}", f"+++ {f'b/{name}' if name else 'after'}"] if hunks else []
    return read_diff("\n".join((*head, *hunks)))


def read_diff(text: str) -> Preview:
    """A unified diff somebody else made, with its added and removed lines counted."""
    added = removed = 0
    for mark, _line in marked_lines(text):
        added += mark == "+"
        removed += mark == "-"
    return Preview(kind="diff", text=text, added=added, removed=removed)


def marked_lines(diff: str) -> Iterator[tuple[str, str]]:
    """Every line of a unified diff with what it is: `+`, `-`, ` ` (unchanged), `@` (a place) or empty (a heading)."""
    old = new = 0
    for line in diff.split("\n"):
        mark = line[:1]
        if old <= 0 and new <= 0:
            place = _PLACE.match(line)
            if place:
                old, new = (int(count) if count else 1 for count in place.groups())
            elif mark in ("+", "-") and not line.startswith(("+++ ", "--- ")):
                yield mark, line  # a loose line, outside any hunk: still a change
                continue
            yield ("@" if place else ""), line
            continue
        if mark == "\\":
            yield "", line
            continue
        old -= mark != "+"
        new -= mark != "-"
        yield mark if mark in ("+", "-") else " ", line


_PLACE = re.compile(r"@@ -\d{1,9}(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@")


def _lines(text: str) -> list[str]:
    """Lines with their breaks. Only `\\n` ends a line: `splitlines` would hide what else looks like a break."""
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _hunks(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    shared = min(len(old), len(new))
    head = next((index for index in range(shared) if old[index] != new[index]), shared)
    tail = next((index for index in range(shared - head) if old[-1 - index] != new[-1 - index]), shared - head)
    if head == len(old) == len(new):
        return
    start = max(0, head - _CONTEXT)
    old_part = old[start : len(old) - max(0, tail - _CONTEXT)]
    new_part = new[start : len(new) - max(0, tail - _CONTEXT)]
    for group in _groups(old_part, new_part, head - start, min(tail, _CONTEXT)):
        yield _place(group, start)
        yield from _body(group, old_part, new_part)


def _groups(old: Sequence[str], new: Sequence[str], head: int, tail: int) -> Iterable[Sequence[_Change]]:
    if len(old) * len(new) <= _MOST_PAIRS:
        return SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(_CONTEXT)
    end, new_end = len(old) - tail, len(new) - tail
    same = ("equal", 0, head, 0, head), ("equal", end, len(old), new_end, len(new))
    return [(same[0], ("replace", head, end, head, new_end), same[1])]


def _place(group: Sequence[_Change], start: int) -> str:
    return f"@@ -{_range(group[0][1], group[-1][2], start)} +{_range(group[0][3], group[-1][4], start)} @@"


def _range(first: int, last: int, start: int) -> str:
    length = last - first
    return f"{start + first + (length > 0)},{length}" if length != 1 else f"{start + first + 1}"


def _body(group: Sequence[_Change], old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    for change, first, last, new_first, new_last in group:
        if change == "equal":
            yield from _marked(" ", old[first:last])
            continue
        yield from _marked("-", old[first:last])
        yield from _marked("+", new[new_first:new_last])


def _marked(mark: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield mark + line.removesuffix("\n")
        if not line.endswith("\n"):
            yield "\\ No newline at end of file"
