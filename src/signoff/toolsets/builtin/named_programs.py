"""Directories below the root whose programs a shell runs by name, because a person configured them.

Writing there changes what runs, so every write is asked about.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from signoff.errors import WrongUse
from signoff.policy.phrases import shown
from signoff.policy.places import folded

FIX = "name directories such as .venv/bin"


def program_directories(given: Iterable[str | os.PathLike[str]], root: str) -> tuple[str, ...]:
    """The directories as real paths.

    Raises `WrongUse` for one that does not exist, has `..` in its path, or contains the root.
    """
    if isinstance(given, str):
        raise WrongUse(f"`programs` is a list of directories, not a text: write [{given}]")
    found: list[str] = []
    for one in given:
        text = os.fspath(one)
        if not text or os.pardir in text.split("/"):
            raise WrongUse(f"`programs` has {shown(text)}, which holds `..`; {FIX}")
        real = os.path.realpath(text)
        if not os.path.isdir(real):
            raise WrongUse(
                f"`programs` has {shown(text)}, and there is no such directory; create it, or remove it here"
            )
        if f"{root.rstrip('/')}/".startswith(f"{real.rstrip('/')}/"):
            raise WrongUse(f"`programs` has {shown(text)}, which is the root directory of the shell; {FIX}")
        found.append(real)
    return tuple(dict.fromkeys(found))


def changed_by(path: str, programs: Iterable[str], root: str) -> str:
    """The program directory that a write to a path changes: one that contains the path, or one below it.

    Paths are absolute. Writes to the root and to directories above it do not count, or no file could be written.
    Returns an empty string if there is none.
    """
    if root != path and f"{root.rstrip('/')}/".startswith(f"{path.rstrip('/')}/"):
        return ""
    names = _names(path)
    for directory in programs if names != _names(root) else ():
        own = _names(directory)
        if names[: len(own)] == own or own[: len(names)] == names:
            return directory
    return ""


def _names(path: str) -> list[str]:
    """The case-folded components of a path, because some file systems ignore case."""
    return [folded(step) for step in os.path.normpath(path).split("/") if step]
