"""Resolve symlinks: where a path really leads. Policy itself never reads the disk."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from stat import S_ISLNK

_PLAIN = re.compile(r"(?!\.\.?(?:/|\Z))[^/\0]+(?:/(?!\.\.?(?:/|\Z))[^/\0]+)*")
"""A relative path in its plainest form: no empty, `.` or `..` steps."""


def followed(root: str, texts: Iterable[str]) -> dict[str, str]:
    """Return the real path of each text that may be a path, with symlinks and `..` resolved.

    Left out are plain relative paths without a symlink, and texts that cannot be resolved. `root` is the directory that
    relative paths start from, itself a real path; `~/` stands for the user's home directory.
    """
    return {text: where for text in texts if (where := _leads_to(root, text)) is not None}


def _leads_to(root: str, text: str) -> str | None:
    try:
        if text.startswith("~/"):
            return os.path.realpath(os.path.expanduser(text))
        if _PLAIN.fullmatch(text) and not _has_link(root, text):
            return None  # the usual case: one `lstat` for each step
        return os.path.realpath(os.path.join(root, text))
    except (OSError, ValueError):
        return None


def _has_link(root: str, text: str) -> bool:
    """Return whether a step below the root is a symlink. A missing file is none, nor is anything below it."""
    path, end = f"{root}/{text}", len(root)
    while end >= 0:
        end = path.find("/", end + 1)
        try:
            mode = os.lstat(path if end < 0 else path[:end]).st_mode
        except FileNotFoundError:
            return False
        if S_ISLNK(mode):
            return True
    return False
