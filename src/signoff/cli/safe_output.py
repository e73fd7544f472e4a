"""Print untrusted text safely: no terminal control characters, and no foreign output between our JSON."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Generator
from contextlib import contextmanager, redirect_stdout
from typing import TextIO

from signoff.core.visible_text import visible

# Characters that move the cursor, colour, make the terminal reply, change the reading direction (bidi) or are
# invisible. Joiners and variation selectors are left alone: emoji and several scripts need them.
STEERS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff]"
)


def for_terminal(text: str, out: TextIO | None = None) -> str:
    """A model's answer as printable text: control characters are escaped at a terminal; elsewhere it is unchanged."""
    if not (out or sys.stdout).isatty():
        return text
    return STEERS.sub(lambda found: visible(found[0]), text.replace("\r\n", "\n"))


@contextmanager
def apart() -> Generator[TextIO]:
    """Reserve standard output for ourselves; yields the stream to write to.

    Meanwhile other code's output, and that of programs it starts, goes to standard error.
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
            own.flush()  # output buffered by code that kept a reference to it
            os.dup2(kept, number)
