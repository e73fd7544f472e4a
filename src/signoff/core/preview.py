"""Previews: what a call would change, as a unified diff or as the tool's own text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

_CONTEXT = 3
# With more changed lines, the smallest diff takes too long to find: everything between the first and the last of them
# is shown as replaced.
_MOST_CHANGES = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """A text that shows the effect of a call before it happens."""

    kind: Literal["diff", "text"]
    text: str
    added: int = 0
    """Number of added lines, if it is a diff."""
    removed: int = 0


def unified_diff(before: str, after: str, path: str = "") -> Preview:
    """The diff of two texts. No difference is left out, not even a missing line break at the end."""
    old, new = _lines(before), _lines(after)
    name = path if path.isprintable() else json.dumps(path)
    hunks = list(_hunks(old, new))
    head = [f"--- {f'a/{name}' if name else 'before'}", f"+++ {f'b/{name}' if name else 'after'}"] if hunks else []
    return read_diff("\n".join((*head, *hunks)))


def read_diff(text: str) -> Preview:
    """Make a preview of a unified diff that somebody else made, and count its added and removed lines."""
    added = removed = 0
    for mark, _line in marked_lines(text):
        added += mark == "+"
        removed += mark == "-"
    return Preview(kind="diff", text=text, added=added, removed=removed)


def marked_lines(diff: str) -> Iterator[tuple[str, str]]:
    """Yield each line of a unified diff with its kind: `+`, `-`, ` ` (unchanged), `@` (hunk), empty (heading)."""
    old = new = 0
    for line in diff.split("\n"):
        mark = line[:1]
        if old <= 0 and new <= 0:
            place = _PLACE.match(line)
            if place:
                old, new = (int(count) if count else 1 for count in place.groups())
            elif mark in ("+", "-") and not line.startswith(("+++ ", "--- ")):
                yield mark, line  # a line outside any hunk is still a change
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
    """Split into lines with their breaks. Only `\\n` ends a line: `splitlines` would hide other line breaks."""
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _hunks(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    script = list(_script(old, new))
    changed = [index for index, (mark, _line) in enumerate(script) if mark != " "]
    spans: list[tuple[int, int]] = []
    for index in changed:
        first, last = max(0, index - _CONTEXT), min(len(script), index + 1 + _CONTEXT)
        if spans and first <= spans[-1][1]:
            spans[-1] = spans[-1][0], last
        else:
            spans.append((first, last))
    at = old_at = new_at = 0
    for first, last in spans:
        old_at += sum(mark != "+" for mark, _line in script[at:first])
        new_at += sum(mark != "-" for mark, _line in script[at:first])
        part = script[first:last]
        old_count = sum(mark != "+" for mark, _line in part)
        new_count = sum(mark != "-" for mark, _line in part)
        yield f"@@ -{_range(old_at, old_count)} +{_range(new_at, new_count)} @@"
        for mark, line in part:
            yield mark + line.removesuffix("\n")
            if not line.endswith("\n"):
                yield "\\ No newline at end of file"
        at, old_at, new_at = last, old_at + old_count, new_at + new_count


def _range(at: int, count: int) -> str:
    return f"{at + 1}" if count == 1 else f"{at + (count > 0)},{count}"


def _script(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield every line of both texts, in order, with ` `, `-` or `+`."""
    shared = min(len(old), len(new))
    head = next((index for index in range(shared) if old[index] != new[index]), shared)
    tail = next((index for index in range(shared - head) if old[-1 - index] != new[-1 - index]), shared - head)
    old_end, new_end = len(old) - tail, len(new) - tail
    yield from ((" ", line) for line in old[:head])
    x, y = head, head
    for kept_x, kept_y in (*_kept(old[head:old_end], new[head:new_end]), (old_end - head, new_end - head)):
        yield from (("-", line) for line in old[x : head + kept_x])
        yield from (("+", line) for line in new[y : head + kept_y])
        x, y = head + kept_x, head + kept_y
        if x < old_end and y < new_end:
            yield " ", old[x]
            x, y = x + 1, y + 1
    yield from ((" ", line) for line in old[old_end:])


def _kept(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Positions of lines that both texts keep, by Myers' shortest edit script; empty if it would be too long."""
    numbers: dict[str, int] = {}
    a = [numbers.setdefault(line, len(numbers)) for line in old]
    b = [numbers.setdefault(line, len(numbers)) for line in new]
    furthest = {1: 0}
    trail: list[dict[int, int]] = []
    for changes in range(min(_MOST_CHANGES, len(a) + len(b)) + 1):
        trail.append(furthest.copy())
        for diagonal in range(-changes, changes + 1, 2):
            x = _step(furthest, diagonal, changes)
            while x < len(a) and x - diagonal < len(b) and a[x] == b[x - diagonal]:
                x += 1
            furthest[diagonal] = x
            if x >= len(a) and x - diagonal >= len(b):
                return _walk_back(trail, len(a), len(b))
    return []


def _step(furthest: dict[int, int], diagonal: int, changes: int) -> int:
    if _goes_down(furthest, diagonal, changes):
        return furthest[diagonal + 1]
    return furthest[diagonal - 1] + 1


def _goes_down(furthest: dict[int, int], diagonal: int, changes: int) -> bool:
    return diagonal == -changes or (diagonal != changes and furthest[diagonal - 1] < furthest[diagonal + 1])


def _walk_back(trail: list[dict[int, int]], x: int, y: int) -> list[tuple[int, int]]:
    kept: list[tuple[int, int]] = []
    for changes in range(len(trail) - 1, -1, -1):
        furthest, diagonal = trail[changes], x - y
        start = _step(furthest, diagonal, changes)
        while x > start:
            x, y = x - 1, y - 1
            kept.append((x, y))
        x, y = (x, y - 1) if _goes_down(furthest, diagonal, changes) else (x - 1, y)
    return kept[::-1]


# --- what a preview was made from ---
#
# A preview shows one moment. If its basis differs when the call is about to run, it was a preview of something else,
# and the call is asked about again.

BASIS = "basis"
"""Metadata key for the basis: for each thing that a preview was made from, by its name in words, a digest of it."""


def basis_of(metadata: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the basis in what a tool says about a call; empty if it says none."""
    said = metadata.get(BASIS)
    if not isinstance(said, Mapping):
        return {}
    found = cast("Mapping[object, object]", said).items()
    return {name: state for name, state in found if isinstance(name, str) and isinstance(state, str)}


def differing(then: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of what is another by now.

    What only one of them knows does not count: after an edit of the arguments a call may be about other things.
    """
    return tuple(name for name, state in then.items() if now.get(name, state) != state)
