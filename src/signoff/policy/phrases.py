"""Words for messages: names with escapes, lists, and the nearest known word ("did you mean")."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

_MOST_NEAREST = 3


def shown(text: str, *, most: int = 60) -> str:
    """Return `text` in backquotes on one line: escape what is not printable, cut what is long."""
    told = cut(text, most)
    return f"`{told}`" if told.isprintable() else "`" + "".join(map(_escaped, told)) + "`"


def cut(text: str, most: int) -> str:
    """The beginning of a text, with `…` where it is cut: before that the masker recognises half a secret, too."""
    return text if len(text) <= most else f"{text[:most]}…"


def as_json(value: object, *, most: int = 60) -> str:
    """Return a value from a rule as JSON, cut if it is long."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return cut(text, most)


def listed(words: Iterable[str], *, most: int = 12) -> str:
    """Return words in backquotes, separated by commas; a long list is cut and says so."""
    every = [shown(word) for word in words]
    rest = f" and {len(every) - most} more" if len(every) > most else ""
    return ", ".join(every[:most]) + rest


def nearest(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """Return the known word most similar to `word`, or None if none is close."""
    return next(iter(_all_nearest(word, known, cutoff=cutoff)), None)


def _all_nearest(word: str, known: Iterable[str], *, cutoff: float = 0.6) -> Sequence[str]:
    """Return the known words most similar to `word`: several if they are equally similar."""
    options = {option.lower(): option for option in sorted(known)}
    from difflib import SequenceMatcher, get_close_matches  # rarely needed

    asked = word.lower()[:80]
    close = get_close_matches(asked, options, n=_MOST_NEAREST, cutoff=cutoff)
    alike = [SequenceMatcher(a=one, b=asked).ratio() for one in close]
    return [options[one] for one, ratio in zip(close, alike, strict=True) if ratio == alike[0]]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a hint that names the nearest known words, or all of them if none is close."""
    words = sorted(known)
    if close := _all_nearest(word, words):
        return f"did you mean {' or '.join(f'`{one}`' for one in sorted(close))}?"
    return f"known here: {listed(words)}" if words else ""


def _escaped(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
