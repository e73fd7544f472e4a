"""Escape untrusted text for Discord messages, so that markdown, mentions and links in it have no effect.

Inside code, Discord interprets neither markdown nor mentions nor links, so text from a call is always in code. It
cannot break out: runs of backticks are spelled out with the markers of `core.visible_text`, which a text that went
through `visible` cannot contain itself. All functions here take texts that went through `visible` once.
"""

from __future__ import annotations

import re
from datetime import datetime

from signoff.channels.discord.sheet import size
from signoff.core.counted import counted
from signoff.core.visible_text import CLOSE, OPEN

PLAIN = "text"
"""The default language of a block: without one, a first line of one word would be taken for the language."""
_LONGEST_SPAN = 120
_TICKS = re.compile(r"`+")
_FENCES = re.compile(r"`{3,}")
_FIRST_BREAKS = re.compile(r"\A\n+")
_LAST_BREAKS = re.compile(r"\n+\Z")
_ACTS = re.compile(r"[!-/:-@\[-`{-~]")
"""ASCII punctuation. A backslash before it is not shown and removes any special meaning."""
_SMALLEST_END = 160
"""With less room, only the beginning is kept."""


def span(text: str) -> str:
    """Return a text as inline code, on one line."""
    return f"`{_spelled_span(text)}`"


def block(text: str, language: str = "") -> str:
    """Return a text as a code block. `language` must be trusted."""
    return _fenced(spelled(text), language)


def plain(text: str) -> str:
    """Return a text on one line with all markdown escaped, for texts that nothing depends on."""
    return _ACTS.sub(r"\\\g<0>", text.replace("\n", _marker("LF", 1)))


def shown(text: str) -> str:
    """Return inline code if the text is short, otherwise a block on the lines below."""
    return span(text) if is_short(text) else f"\n{block(text)}"


def is_short(text: str) -> bool:
    """Whether a text is fully visible as inline code: short, and without line breaks or repeated blanks."""
    return size(text) <= _LONGEST_SPAN and not re.search(r"[\n\t`]| {2}|\\\Z|\A\s", text)


def moment(at: datetime, style: str = "") -> str:
    """Return a Discord timestamp, shown in the reader's time zone: `T` time, `R` relative, otherwise date and time."""
    return f"<t:{int(at.timestamp())}{f':{style}' if style else ''}>"


def short_span(text: str, room: int) -> str:
    """Return the beginning of a text as inline code of at most `room` characters, for names and lists."""
    inside = _spelled_span(text)
    return f"`{inside}`" if _fits(inside, room - 2) else f"`{first(inside, room - 3)}…`"


def short_plain(text: str, room: int) -> str:
    """Return the beginning of a text as `plain` writes it, of at most `room` characters."""
    if _fits(made := plain(text), room):
        return made
    # Do not separate a backslash from what it escapes.
    return re.sub(r"(?<!\\)((?:\\\\)*)\\\Z", r"\1", first(made, room - 1)) + "…"


def cut_block(text: str, language: str, room: int) -> tuple[str, int]:
    """Return a code block of at most `room` characters and how many are missing. Only the two ends are kept."""
    body = spelled(text)
    left = max(0, room - size(_fenced("", language)))
    if _fits(body, left):
        return _fenced(body, language), 0
    kept, missing = _ends(body, left, whole_lines=language == "diff")
    return _fenced(kept, language), missing


def spelled(text: str) -> str:
    """Escape the inside of a block: Discord drops line breaks at both ends, and three backticks would close it."""
    if not text:
        return f"{OPEN}empty{CLOSE}"
    text = _FENCES.sub(lambda found: _marker("backtick", len(found[0])), text)
    text = _FIRST_BREAKS.sub(lambda found: _marker("LF", len(found[0])), text)
    return _LAST_BREAKS.sub(lambda found: _marker("LF", len(found[0])), text)


def first(text: str, room: int) -> str:
    """Return as much of the beginning as fits. A marker is kept whole or not at all."""
    piece = text[: max(0, room)]
    while (excess := size(piece) - room) > 0:
        piece = piece[: -((excess + 1) // 2)]
    opened = piece.rfind(OPEN)
    return piece[:opened] if opened > piece.rfind(CLOSE) and len(piece) < len(text) else piece


def _last(text: str, room: int) -> str:
    piece = text[-room:] if room > 0 else ""
    while (excess := size(piece) - room) > 0:
        piece = piece[(excess + 1) // 2 :]
    closed, opened = piece.find(CLOSE), piece.find(OPEN)
    return piece[closed + 1 :] if closed >= 0 and (opened < 0 or closed < opened) else piece


def _ends(text: str, room: int, *, whole_lines: bool) -> tuple[str, int]:
    """Return the beginning and the end of a text with a marker between them, and how much is missing."""
    room -= size(f"\n{_missing(len(text))}\n")
    end = _last(text, room // 4) if room >= _SMALLEST_END and not whole_lines else ""
    begin = first(text, room - size(end))
    if whole_lines and "\n" in begin:
        begin = begin.rpartition("\n")[0]
    missing = len(text) - len(begin) - len(end)
    return "\n".join(part for part in (begin, _missing(missing), end) if part), missing


def _missing(count: int) -> str:
    return f"{OPEN}{counted(count, 'character')} left out{CLOSE}"


def _spelled_span(text: str) -> str:
    if not text:
        return f"{OPEN}empty{CLOSE}"
    text = _TICKS.sub(lambda found: _marker("backtick", len(found[0])), text)
    text = re.sub(r"\n+", lambda found: _marker("LF", len(found[0])), text)
    # If a client read `\`` as an escaped backtick, the span would not close, and code and text would be swapped.
    text = re.sub(r"\\+\Z", lambda found: _marker("backslash", len(found[0])), text)
    return re.sub(r"\A +| +\Z", lambda found: _marker("space", len(found[0])), text)


def _fenced(body: str, language: str) -> str:
    return f"```{language or PLAIN}\n{body}\n```"


def _marker(name: str, count: int) -> str:
    return f"{OPEN}{name}{f'×{count}' if count > 1 else ''}{CLOSE}"


def _fits(text: str, room: int) -> bool:
    return len(text) <= room and size(text) <= room
