"""Find where a regular expression ends inside a script, and handle programs that disagree about that."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from signoff.policy.shell.languages.trouble import Trouble


class Brackets(Enum):
    """How a program reads `[…]` while it looks for the end of a regular expression.

    No two families agree on `/[/]/` and `/[\\]/]/`, so a script with a bracket is read in all three ways.
    """

    POSIX = "a delimiter inside is an ordinary character, and so is a backslash"
    ESCAPED = "a delimiter inside is an ordinary character, and a backslash takes the next one with it"
    UNSEEN = "brackets mean nothing: the first delimiter without a backslash ends it"


class Stop(Exception):
    """Raised if a script is not harmless, or not understood."""

    def __init__(self, word: str, why: str, *, broken: bool = False) -> None:
        super().__init__(why)
        self.trouble = Trouble(word if len(word) <= 80 else f"{word[:79]}…", why)
        self.broken = broken
        """Certainly a syntax error: a program that reads the script this way stops before it does anything."""


def settle(check: Callable[[str, Brackets], bool], script: str, usual: Brackets) -> Trouble | None:
    """Return the trouble that `check` raises for a script, or None.

    There must be none in the usual reading, and none or a syntax error in the others. `check` returns whether any
    regular expression contained a bracket. If none did, all readings are the same.
    """
    try:
        if not check(script, usual):
            return None
    except Stop as stop:
        return stop.trouble
    for reading in Brackets:
        try:
            if reading is not usual:
                check(script, reading)
        except Stop as stop:
            if not stop.broken:
                return stop.trouble
    return None


def regex_end(text: str, at: int, close: str, brackets: Brackets) -> int:
    """Return where the delimiter is that ends the regular expression starting at `at`; -1 if its line has none."""
    size = len(text)
    while at < size:
        char = text[at]
        if char == close:
            return at
        if char == "\n":
            return -1
        if char == "\\":
            at += 2
        elif char == "[" and brackets is not Brackets.UNSEEN:
            at = _bracket_end(text, at + 1, brackets)
            if at < 0:
                return -1
        else:
            at += 1
    return -1


def _bracket_end(text: str, at: int, brackets: Brackets) -> int:
    """Return the position after the `]` that closes a bracket, given the position after its `[`, or -1."""
    if text.startswith("^", at):
        at += 1
    if text.startswith("]", at):
        at += 1
    size = len(text)
    while at < size and (char := text[at]) != "\n":
        if char == "]":
            return at + 1
        if char == "\\" and brackets is Brackets.ESCAPED:
            at += 2
        elif char == "[" and text[at + 1 : at + 2] in (":", ".", "="):
            at = _class_end(text, at)
        else:
            at += 1
    return -1


def _class_end(text: str, at: int) -> int:
    """Return the position after a class such as `[:alpha:]`. Programs disagree about one that is not closed."""
    mark = text[at + 1]
    end = at + 2
    while text[end : end + 1].isalnum() and end - at < 20:
        end += 1
    if not text.startswith(f"{mark}]", end):
        raise Stop(text[at:end], "unknown: has a character class that is not closed")
    return end + 2
