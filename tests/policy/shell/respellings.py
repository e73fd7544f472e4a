"""Other spellings of a command that programs read as the same: made from its words alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

_PATH = re.compile(r"[\w~./][\w./-]*[./][\w./-]*|[\w./-]+\.\w+")
"""What looks like a path, and not like a sub-command or another word."""
_FEWEST = 3
"""The fewest letters of a long option that an abbreviation keeps."""


def respellings(argv: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield spellings of a command in which one word, or an option with its value, is written in another way."""
    for at, word in enumerate(argv[1:], 1):
        for others in _of_word(word):
            yield (*argv[:at], *others, *argv[at + 1 :])
    for at, (word, after) in enumerate(pairwise(argv)):
        if at and word.startswith("--") and "=" not in word and len(word) > 2:
            yield (*argv[:at], f"{word}={after}", *argv[at + 2 :])
        if at and len(word) == 2 and word[0] == "-" and word != "--" and after[:1] != "-":
            yield (*argv[:at], f"{word}{after}", *argv[at + 2 :])
            yield from ((*argv[:at], f"{word}{other}", *argv[at + 2 :]) for other in _of_place(after))
    last = max((at for at, word in enumerate(argv) if word[:1] == "-"), default=0)
    if "--" not in argv and last == 0 and len(argv) > 1:
        yield (argv[0], "--", *argv[1:])


def _of_word(word: str) -> Iterator[tuple[str, ...]]:
    name, equals, value = word.partition("=")
    if word.startswith("--"):
        yield from ((name[:end] + equals + value,) for end in range(len(name) - 1, _FEWEST + 1, -1))
        if equals:
            yield (name, value)
            yield from ((f"{name}={other}",) for other in _of_place(value))
    yield from ((other,) for other in _of_place(word))


def _of_place(word: str) -> Iterator[str]:
    """Yield other spellings of the same path, if the word looks like one."""
    if not _PATH.fullmatch(word) or ".." in word:
        return
    head, slash, last = word.rpartition("/")
    yield from (f"{word}/", f"{word}//", f"{word}/.", f"{word}/./")
    if word[0] in "/~":
        yield from (f"/{word}", f"/.{word}") if word[0] == "/" else ()
    else:
        yield from (f"./{word}", f".//{word}", f"././{word}", f"x/../{word}")
    if slash:
        yield from (f"{head}//{last}", f"{head}/./{last}", f"{head}/x/../{last}")
