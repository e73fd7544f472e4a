"""Texts that are safe to show and store: secrets masked, hidden characters escaped, masks kept."""

from __future__ import annotations

import re
from collections.abc import Iterable

from signoff.core.redact import Redactor, read_ahead, without_half_a_mask
from signoff.core.visible_text import CLOSE, OPEN, has_hidden, visible


def safe_text(text: str, *, secrets: Iterable[str] = (), lines: bool = False, output: bool = False) -> str:
    """Mask secrets and make hidden characters visible; line breaks are kept with `lines`, blanks with `output`."""
    redactor = Redactor(secrets, avoid=text)
    return redactor.visible(redactor.text(text), lines=lines, output=output)


def safe_beginning(
    text: str, *, longest: int, secrets: Iterable[str] = (), lines: bool = False, output: bool = False
) -> str:
    """Return the beginning of a text, safe to show. Masked first, then cut: half a secret would not be recognised.

    A text that cannot be masked is not shown. `output` is as for `visible`.
    """
    read = read_ahead(text, longest)
    redactor = Redactor(secrets, avoid=read)
    try:
        safe = redactor.visible(redactor.text(read), lines=lines, output=output)
    except Exception as error:  # whatever is wrong with a text, what it is about goes on, and is recorded
        return f"(a text of {len(text):,} characters that could not be masked: {type(error).__name__})"
    if len(safe) <= longest and read is text:
        return safe
    return f"{without_half_a_mask(safe[:longest], redactor.stem)}… ({len(text):,} characters)"


def in_one_line(text: str) -> str:
    """Return an error with the hints below it, which are indented, on one line. Not safe to show yet."""
    return _HINT.sub(lambda found: f"{found[1] or ';'} ", text)


_HINT = re.compile(r"([.:;?!]?)\n {2,}")


def error_line(error: BaseException, *, secrets: Iterable[str] = ()) -> str:
    """Return an error with the hints below it on one line, safe to show."""
    return safe_text(in_one_line(str(error)), secrets=secrets)


def kept_text(text: str, *, lines: bool = False) -> str:
    """Show a stored text that was made safe before: keep its markers and masks, escape anything hidden besides."""
    shown = visible(text, lines=lines, output=True)  # its blanks are as they were left then
    for bracket in (OPEN, CLOSE):
        shown = shown.replace(visible(bracket), bracket)
    return shown


def printable(text: str) -> str:
    """Return a stored text that was made safe before; escape it if it contains hidden characters nevertheless."""
    return kept_text(text) if has_hidden(text) else text


def redacted_text(text: str, *, lines: bool = False) -> str:
    """Escape a text that was redacted elsewhere. What looks like a mask is kept as a mask."""
    return _MASK.sub(rf"{OPEN}\1{CLOSE}", visible(text, lines=lines))


_MASK = re.compile(rf"{re.escape(visible(OPEN))}(masked'* \d+: [^{OPEN}{CLOSE}]*){re.escape(visible(CLOSE))}")
