"""What tells one state of a file from another: the basis of the previews that file tools show."""

from __future__ import annotations

import stat
from collections.abc import Callable
from hashlib import sha256

from signoff.core.preview import marked_lines
from signoff.toolsets.builtin.files.diffs import change
from signoff.toolsets.builtin.files.spot import Spot

NOTHING, UNREADABLE, NO_CHANGE = "nothing is there", "it cannot be read", "it changes nothing"
_DIGITS = 32


def placed(state: str, where: str) -> str:
    """The state of a file and where it really is: a symlink on the way may be another one by then.

    Without a `state`, whatever is there may have changed.
    """
    return f"{state}\n{where}"


def is_as_shown(then: str, where: str, state: Callable[[], str]) -> bool:
    """Whether a file is where it was, and as it was when somebody was shown `then`, as `placed` returned it."""
    shown_state, _, shown_where = then.partition("\n")
    return shown_where == where and (not shown_state or shown_state == state())


def state_of(spot: Spot, most_bytes: int) -> str:
    """The state of whatever has this name: a digest of its content. A file that is too large is not read."""
    try:
        there = spot.stat()
        if there is None:
            return NOTHING
        if not stat.S_ISREG(there.st_mode) or (opened := spot.open()) is None:
            return "not a file"
        with opened:
            if opened.stat.st_size > most_bytes:
                return f"{opened.stat.st_size} bytes, changed at {opened.stat.st_mtime_ns}"
            return _digest(opened.read(most_bytes + 1))
    except OSError:
        return UNREADABLE


def state_of_edit(before: bytes, after: bytes) -> str:
    """The state of the lines that the diff of an edit shows. The rest may change: an edit leaves it alone."""
    diff = change(before, after, "").get("diff")
    if diff is None:
        return _digest(before)
    # Without the numbers of the lines, which change with lines above them.
    shown = ["@@" if mark == "@" else line for mark, line in marked_lines(diff) if mark in ("@", " ", "-")]
    return _digest("\n".join(shown).encode(errors="backslashreplace"))


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()[:_DIGITS]
