"""What others wrote, printed so that it does no harm: nothing that steers a terminal, JSON unmixed."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Generator
from contextlib import contextmanager, redirect_stdout
from typing import TextIO

from signoff.core.visible_text import visible

# What moves the cursor, colours, answers back, turns the reading direction around or is never seen. Joiners and
# variation selectors are left alone: emoji and several scripts are written with them.
STEERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff]"
)


def for_terminal(text: str, out: TextIO | None = None) -> str:
    """A model's answer as it may be printed: at a terminal nothing in it acts; elsewhere it is left as it is."""
    if not (out or sys.stdout).isatty():
        return text
    return STEERS.sub(lambda found: visible(found[0]), text.replace("\r\n", "\n"))


@contextmanager
def apart() -> Generator[TextIO]:
    """Standard output for ourselves: gives what to write to.

    While inside, whatever others print, and what programs print that they start, goes to standard error.
    """
    own = sys.stdout
    own.flush()
    try:
        number, error = own.fileno(), sys.stderr.fileno()
    except (OSError, ValueError, AttributeError):  # not files, as in tests
        with redirect_stdout(sys.stderr):
            yield own
        return
    kept = os.dup(number)
    with open(kept, "w", encoding=own.encoding, errors=own.errors) as out, redirect_stdout(sys.stderr):
        os.dup2(error, number)
        try:
            yield out
        finally:
            own.flush()  # what was printed to it by whoever held on to it
            os.dup2(kept, number)
