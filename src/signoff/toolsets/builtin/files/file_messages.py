"""Texts for the model: lines of a file, and errors. They never show a path that the model did not write itself."""

from __future__ import annotations

import errno
from collections.abc import Callable, Generator
from contextlib import contextmanager

from pydantic_ai.exceptions import ToolFailed

from signoff.core.counted import counted
from signoff.policy.glob import BadGlob
from signoff.policy.linear_regex import BadRegex, LinearRegex
from signoff.policy.phrases import shown
from signoff.toolsets.builtin.files.diffs import EditTrouble
from signoff.toolsets.builtin.files.judge import OUTSIDE
from signoff.toolsets.builtin.files.root_directory import Outside
from signoff.toolsets.builtin.files.spot import NotPlain

LONGEST_PATTERN = 500
_WORDS = {
    errno.ENOENT: "does not exist",
    errno.EEXIST: "already exists; use another name, or overwrite",
    errno.EISDIR: "is a directory",
    errno.ENOTDIR: "goes through something that is not a directory",
    errno.ENOTEMPTY: "is a directory that is not empty",
    errno.EACCES: "cannot be used: permission denied",
    errno.EPERM: "cannot be used: permission denied",
    errno.EROFS: "is on a disk that cannot be written",
    errno.ELOOP: "goes through symbolic links that form a loop or lead into /proc",
    errno.ENAMETOOLONG: "is too long",
    errno.ENOSPC: "cannot be written: the disk is full",
    errno.EXDEV: "is on another disk",
    errno.EINVAL: "cannot be used this way",
    errno.ENXIO: "is not a regular file",
}


@contextmanager
def telling(path: str) -> Generator[None]:
    """Turn every error about a path into a `ToolFailed` for the model."""
    try:
        yield
    except Outside:
        raise ToolFailed(f"{shown(path)} is refused: {OUTSIDE}") from None
    except NotPlain as error:
        raise ToolFailed(f"{shown(path)} {error.strerror}, which these tools do not use") from None
    except OSError as error:
        words = _WORDS.get(error.errno or 0) or f"cannot be used: {error.strerror or 'the system refused it'}"
        raise ToolFailed(f"{shown(path)} {words}") from None
    except (BadGlob, BadRegex) as error:
        raise ToolFailed(f"the pattern cannot be used: {error}") from None
    except EditTrouble as error:
        raise ToolFailed(f"{shown(path)} is left as it is: {error}") from None


def some_lines(data: bytes, start: int, most: int, most_chars: int) -> str:
    """Lines of a text, with a last line in brackets if some are left out or changed. Raises `ToolFailed`."""
    text = data.decode("utf-8", "replace")
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    if not lines:
        return "[the file is empty]"
    if start > len(lines):
        raise ToolFailed(f"the file has {counted(len(lines), 'line')} only")
    chosen: list[str] = []
    room = most_chars
    for line in lines[start - 1 : start - 1 + most]:
        if len(line) + 1 > room and chosen:
            break
        chosen.append(line[:room])
        room -= len(line) + 1
    end = start - 1 + len(chosen)
    notes: list[str] = []
    if start > 1 or end < len(lines):
        notes.append(f"lines {start}-{end} of {len(lines)}")
    if room < 0 and len(chosen) == 1 and len(lines[start - 1]) > most_chars:
        notes.append(f"line {start} is cut after {most_chars:,} characters")
    if end < len(lines):
        notes.append(f"continue with start_line={end + 1}")
    if "\ufffd" in text and not _is_utf8(data):
        notes.append("bytes that are not UTF-8 are shown as \ufffd")
    return "\n".join([*chosen, f"[{'; '.join(notes)}]"]) if notes else text


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def line_test(pattern: str, *, regex: bool, ignore_case: bool) -> Callable[[str], bool]:
    """Return a test of whether a line matches. Raises `BadRegex`."""
    if not pattern:
        raise BadRegex("it is empty")
    if len(pattern) > LONGEST_PATTERN:
        raise BadRegex(f"it is longer than {LONGEST_PATTERN:,} characters")
    if regex:
        return LinearRegex(f"(?i){pattern}" if ignore_case and not pattern.startswith("(?i)") else pattern).search
    if ignore_case:
        folded = pattern.casefold()
        return lambda line: folded in line.casefold()
    return lambda line: pattern in line
