"""Read a long text in pieces: while one search or one conversion of a text runs, no other thread does.

A text is cut at a seam: a character that no match has in it. What is found in the pieces is what is found in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

PIECE = 16_384
"""Characters that are read at once."""


def pieces(text: str, seam: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Yield from where to where each piece of a text goes. Each but the last ends with a seam."""
    start = 0
    while len(text) - start > PIECE and (found := seam.search(text, start + PIECE)) is not None:
        yield start, found.end()
        start = found.end()
    yield start, len(text)


def matches(pattern: re.Pattern[str], text: str, seam: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """`pattern.finditer(text)`, for a pattern that matches no seam and looks no further than to the next character."""
    for start, end in pieces(text, seam):
        yield from pattern.finditer(text, start, end)


def characters(text: str) -> set[str]:
    """All characters of a text."""
    return set[str]().union(*map(set[str], parts(text)))


def parts(text: str) -> Iterator[str]:
    """The pieces of a text, cut anywhere: for what looks at each character by itself."""
    return (text[start : start + PIECE] for start in range(0, len(text), PIECE))
