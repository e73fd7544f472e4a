"""Where a path leads once links are followed: the look at the disk that policy itself never takes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from stat import S_ISLNK

_PLAIN = re.compile(r"(?!\.\.?(?:/|\Z))[^/\0]+(?:/(?!\.\.?(?:/|\Z))[^/\0]+)*")
"""A relative path written as plainly as it can be: no empty, `.` or `..` steps."""


def followed(root: str, texts: Iterable[str]) -> dict[str, str]:
    """For each text that may be a path: where it leads, unless that is where it says or cannot be said.

    `root` is the directory relative paths start from, itself a real path; `~/` stands for the user's home directory.
    """
    return {text: where for text in texts if (where := _leads_to(root, text)) is not None}


def _leads_to(root: str, text: str) -> str | None:
    try:
        if text.startswith("~/"):
            return os.path.realpath(os.path.expanduser(text))
        if _PLAIN.fullmatch(text) and not _has_link(root, text):
            return None  # the usual case, for one look at the disk for each step
        return os.path.realpath(os.path.join(root, text))
    except (OSError, ValueError):
        return None


def _has_link(root: str, text: str) -> bool:
    """Whether a step below the root is a link. What is not there is none, nor what is below it."""
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
