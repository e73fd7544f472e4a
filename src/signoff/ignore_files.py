"""Which files a search leaves out, by the ignore files beside and above them, as ripgrep and what is built on it read
them. What is not certain counts as searched.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import translate
from functools import lru_cache
from typing import NamedTuple

from signoff.disk_steps import DiskSteps
from signoff.policy.step_count import COSTS
from signoff.regular_file import bytes_of

_OF_GIT = (".gitignore", os.path.join(".git", "info", "exclude"))
_CERTAIN = (*_OF_GIT, ".ignore", ".rgignore")
_NAMES = (*_CERTAIN, ".agignore", ".fdignore")
_LARGEST = 1 << 20
"""The most bytes of an ignore file that are read. A longer one may let in anything."""
_BYTES = 8
"""How many bytes of an ignore file are one step: comments take time as well."""
_ODD = frozenset("[\\{")
_WILD = frozenset("*?[")
"""Characters of patterns that are not looked into."""
_PLAIN = re.compile(rb"[!-~](?:[ -~]*[!-~])?")
"""A line that all programs read alike."""


class _Line(NamedTuple):
    """A pattern of an ignore file that leaves out what it matches."""

    pattern: str
    of_git: bool
    """Whether it only counts in a repository of git."""

    def matches(self, steps: Sequence[str], given: int) -> bool:
        """Whether it certainly is about this path, seen from the directory of its file, or a directory on the way.

        The first `given` steps are those that the search was told to start with, about which no pattern is asked.
        """
        path = self.pattern.rstrip("/")
        if not _ODD.isdisjoint(path) or "**" in path:
            return False
        on_the_way = steps[:-1] if self.pattern.endswith("/") else steps
        if "/" not in path:
            return any(_fits(step, path) for step in on_the_way[given:])
        parts = path.removeprefix("/").split("/")
        return given < len(parts) <= len(on_the_way) and all(map(_fits, on_the_way, parts))


@lru_cache(maxsize=8192)  # more than are counted for one call
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern))


def _fits(name: str, pattern: str) -> bool:
    return name == pattern if _WILD.isdisjoint(pattern) else _compiled(pattern).match(name) is not None


class _Directory(NamedTuple):
    """What the ignore files of a directory say."""

    leaves_out: Sequence[_Line]
    lets_in: Sequence[str]
    """The last steps of the patterns behind a `!`, in small letters."""
    is_top: bool
    """Whether it is the top of a repository."""

    def may_let_in(self, steps: Sequence[str]) -> bool:
        return any(
            not _ODD.isdisjoint(last) or any(_fits(step.lower(), last) for step in steps) for last in self.lets_in
        )


class IgnoreFiles:
    """The ignore files of a tree. Each is read once. Raises `Unclear` if the count ends."""

    def __init__(self, count: DiskSteps) -> None:
        self._read: dict[str, _Directory] = {}
        self._count = count

    def lets_in(self, path: str) -> bool:
        """Return whether a search may read a file that it would leave out otherwise, for one that is hidden."""
        places = {os.path.abspath(path), os.path.join(self._count.real(os.path.dirname(path)), os.path.basename(path))}
        levels = [level for place in places for level in self._above(place)]
        self._compare(levels)
        return any(here.may_let_in(steps) for steps, here in levels)

    def leaves_out(self, path: str, start: str, *, to_git: bool = False) -> bool:
        """Return whether a search below `start` certainly does not read a file, unless it is told so.

        With `to_git`, it may be one by git, which reads only its own ignore files.
        """
        path, start = os.path.abspath(path), os.path.abspath(start)
        if self._count.real(os.path.dirname(path)) != os.path.dirname(path):
            return False  # which ignore files lie above it then depends on the program
        levels = list(self._above(path))
        self._compare(levels)
        if any(here.may_let_in(steps) for steps, here in levels):
            return False
        inside = next((at + 1 for at, (_, here) in enumerate(levels) if here.is_top), 0)
        below = len(path.split(os.sep)) - len(start.rstrip(os.sep).split(os.sep))
        return any(
            (at < inside if line.of_git else not to_git) and line.matches(steps, max(0, len(steps) - below))
            for at, (steps, here) in enumerate(levels)
            for line in here.leaves_out
        )

    def _compare(self, levels: Sequence[tuple[Sequence[str], _Directory]]) -> None:
        """Count what it takes to compare a file with the lines above it."""
        self._count.take(sum(len(steps) * (1 + len(here.leaves_out) + len(here.lets_in)) for steps, here in levels))

    def _above(self, path: str) -> Iterator[tuple[list[str], _Directory]]:
        """Yield, for each directory from that of a file upwards, the way to the file from there, and the directory."""
        directory, name = os.path.split(path)
        way = [name]
        while True:
            if directory not in self._read:
                self._read[directory] = self._directory(directory)
            yield way, self._read[directory]
            directory, name = os.path.split(directory)
            if not name:
                return
            way = [name, *way]

    def _directory(self, directory: str) -> _Directory:
        self._count.take(COSTS["status"] * (len(_NAMES) + 1))
        found = _directory(directory, self._count)
        self._count.take(COSTS["expression"] * (len(found.leaves_out) + len(found.lets_in)))
        return found


def _directory(directory: str, count: DiskSteps) -> _Directory:
    leaves_out, lets_in = list[_Line](), list[str]()
    for name in _NAMES:
        data = _bytes(os.path.join(directory, name))
        if data is None or len(data) > _LARGEST:
            lets_in.append("*")
            continue
        count.take(len(data) // _BYTES)
        shown = (line.strip() for line in data.decode("utf-8", "replace").removeprefix("\ufeff").splitlines())
        lets_in += [line[1:].rstrip("/").rpartition("/")[2].lower() for line in shown if line.startswith("!")]
        if name in _CERTAIN:
            plain = (line for line in _readable(data).split(b"\n") if _PLAIN.fullmatch(line))
            leaves_out += [_Line(one.decode(), name in _OF_GIT) for one in plain if one[:1] not in b"!#"]
    return _Directory(leaves_out, lets_in, os.path.lexists(os.path.join(directory, ".git")))


def _bytes(file: str) -> bytes | None:
    """Return what stands in an ignore file; None if it is none that every program reads: a link, a pipe, a device."""
    try:
        return bytes_of(file, _LARGEST + 1, follow=False)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return b""
    except OSError:
        return None


def _readable(data: bytes) -> bytes:
    """Return the beginning that is text: programs stop at a line that is none."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        return data[: data.rfind(b"\n", 0, error.start) + 1]
    return data
