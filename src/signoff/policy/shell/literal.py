"""Read one word of a shell command: from its source to the text that a program would get."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

HOLE = "${_}"
"""Placeholder for an expansion in a text. It is an expansion itself, so that the text can be parsed again."""

_PLAIN = re.compile(r"[A-Za-z0-9_./=:,+@%^-]*\Z")
_EXPANDS = re.compile(r"[A-Za-z0-9_@*#?$!({\[\\-]")
_META = frozenset("|&;()<> \t\n")
_ESCAPE = re.compile(
    r"""[^\\]+|\\(?:(?P<plain>[abeEfnrtv\\'"?])|(?P<oct>[0-7]{1,3})|x(?P<hex>[0-9A-Fa-f]{1,2})"""
    r"""|u(?P<u4>[0-9A-Fa-f]{1,4})|U(?P<u8>[0-9A-Fa-f]{1,8}))""",
    re.DOTALL,
)
_PLAIN_ESCAPES = dict(zip("abeEfnrtv\\'\"?", "\a\b\x1b\x1b\f\n\r\t\v\\'\"?", strict=True))


class Certainty(Enum):
    """How certain the text of a word is."""

    SURE = "sure"
    GLOB = "glob"
    """An unquoted `*`, `?` or `[`: the shell may replace it by file names."""
    PART = "part"
    """It contains an expansion; the text has `HOLE`, or the source, in its place."""


class Arg(NamedTuple):
    """One word of a command, as far as it is known."""

    text: str | None
    """None if nothing is known."""
    kind: Certainty = Certainty.SURE

    @property
    def word(self) -> str | None:
        """The word; None if it contains an expansion."""
        return None if self.kind is Certainty.PART else self.text

    @property
    def sure(self) -> str | None:
        """The text, only if the shell expands nothing in it; otherwise None."""
        return self.text if self.kind is Certainty.SURE else None

    @property
    def may_be_option(self) -> bool:
        """Whether it may turn out to be an option."""
        return self.kind is not Certainty.SURE and (self.text or "-")[0] in "-${"

    def partly(self) -> Arg:
        """Return the same text, marked as partly replaced before it is used."""
        return Arg(self.text, Certainty.PART)


UNKNOWN = Arg(None, Certainty.PART)


class _Disagreement(Exception):
    """The source does not look like one word: the parser and this module disagree."""


def read_word(source: str, start: int, end: int, holes: Sequence[tuple[int, int]] = ()) -> tuple[Arg, bool]:
    """Return the word at `source[start:end]`, and whether it is one word by our own reading.

    `holes` are the spans of the expansions in it, in order. If it is not one word, the text is the source itself.
    """
    text = source[start:end]
    if not holes and _PLAIN.match(text):
        return Arg(text), True
    try:
        return _Reading(source, end, holes).word(start), True
    except _Disagreement:
        return Arg(text, Certainty.PART), False


class _Reading:
    def __init__(self, source: str, end: int, holes: Sequence[tuple[int, int]]) -> None:
        self.source, self.end = source, end
        self.holes = dict(holes)
        self.out: list[str] = []
        self.bare: list[str] = []  # what is outside quotes
        self.part = False

    def word(self, at: int) -> Arg:
        while at < self.end:
            at = self._step(at)
        bare = "".join(self.bare)
        opened, closed = bare.find("{"), bare.rfind("}")
        inner = bare[opened:closed] if 0 <= opened < closed else ""
        kind = Certainty.SURE
        if self.part or "," in inner or ".." in inner:
            kind = Certainty.PART
        elif "*" in bare or "?" in bare or "]" in bare.partition("[")[2]:
            kind = Certainty.GLOB
        return Arg("".join(self.out), kind)

    def _step(self, at: int) -> int:
        char = self.source[at]
        if (after := self._hole(at)) is not None:
            return after
        if char == "'":
            close = self._find("'", at + 1)
            self.out.append(self.source[at + 1 : close])
            return close + 1
        if char == '"':
            return self._double(at + 1)
        if char == "\\":
            following = self.source[at + 1 : min(at + 2, self.end)]
            self.out.append("" if following == "\n" else following or "\\")
            return at + 2
        if char == "$":
            return self._dollar(at)
        if char in _META or char == "`":
            raise _Disagreement
        self.out.append(char)
        self.bare.append(char)
        return at + 1

    def _hole(self, at: int) -> int | None:
        after = self.holes.get(at)
        if after is not None:
            self.out.append(HOLE)
            self.part = True
        return after

    def _find(self, char: str, at: int) -> int:
        found = self.source.find(char, at, self.end)
        if found < 0:
            raise _Disagreement
        return found

    def _dollar(self, at: int) -> int:
        following = self.source[at + 1 : min(at + 2, self.end)]
        if following == "'":
            return self._ansi(at + 2)
        if following == '"':
            self.part = True  # a translation may replace it
            return self._double(at + 2)
        return self._lone_dollar(at, following)

    def _lone_dollar(self, at: int, following: str) -> int:
        if _EXPANDS.match(following):
            raise _Disagreement
        self.out.append("$")
        return at + 1

    def _double(self, at: int) -> int:
        source = self.source
        while at < self.end and source[at] != '"':
            char = source[at]
            if (after := self._hole(at)) is not None:
                at = after
            elif char == "\\":
                following = source[at + 1 : min(at + 2, self.end)]
                if following != "\n":
                    self.out.append(following if following in ("$", "`", '"', "\\") else "\\" + following)
                at += 2
            elif char == "$":
                at = self._lone_dollar(at, source[at + 1 : min(at + 2, self.end)])
            elif char == "`":
                raise _Disagreement
            else:
                self.out.append(char)
                at += 1
        if at >= self.end:
            raise _Disagreement
        return at + 1

    def _ansi(self, at: int) -> int:
        close = at
        while close < self.end and self.source[close] != "'":
            close += 2 if self.source[close] == "\\" else 1
        if close >= self.end:
            raise _Disagreement
        self.out.append(_ansi_text(self.source[at:close]))
        return close + 1


def _ansi_text(text: str) -> str:
    out: list[str] = []
    at = 0
    while at < len(text):
        match = _ESCAPE.match(text, at)
        if match is None:
            raise _Disagreement
        out.append(_escape(match))
        at = match.end()
    return "".join(out)


def _escape(match: re.Match[str]) -> str:
    if plain := match["plain"]:
        return _PLAIN_ESCAPES[plain]
    wide = match["u4"] or match["u8"]
    if wide or match["oct"] or match["hex"]:
        code = int(wide, 16) if wide else int(match["oct"], 8) if match["oct"] else int(match["hex"], 16)
        # A NUL ends the string, a byte above 127 may be part of a character, and not every number is a character.
        if code == 0 or code > (0x10FFFF if wide else 0x7F) or 0xD800 <= code < 0xE000:
            raise _Disagreement
        return chr(code)
    return match[0]


def unescape_here(text: str) -> str:
    """Return the text of a here-document with an unquoted delimiter, without its backslashes."""
    return re.sub(r"\\([$`\\]|\n)", lambda match: match[1].strip("\n"), text)
