"""Search the files below a root by name or by content. Symlinks found on the way are never followed."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from signoff.core.visible_text import visible
from signoff.policy.glob import Glob
from signoff.policy.match_result import Truth
from signoff.toolsets.builtin.files.diffs import is_binary
from signoff.toolsets.builtin.files.root_directory import Root
from signoff.toolsets.builtin.files.spot import DirectoryEntry

MOST_ENTRIES = 100_000
SECONDS = 10.0
_MOST_LINE = 20_000
_MOST_SHOWN = 300
_NOT_LOOKED_INTO = frozenset({".git", ".hg", ".svn", ".jj", ".signoff"})
"""Directories that tools keep for themselves. They are searched only if the path names them."""


@dataclass(slots=True)
class FileSearch:
    """One search through a directory: its limits, and what was left out so far."""

    root: Root
    most: int
    """Most results that are returned."""
    until: float = field(default_factory=lambda: time.monotonic() + SECONDS)
    entries: int = 0
    cut: str = ""
    """Why the search stopped early."""
    left_out: Counter[str] = field(default_factory=Counter[str])

    def is_over(self, found: int) -> bool:
        """Whether to stop; sets `cut` to the reason."""
        if found >= self.most:
            self.cut = f"stopped after {found} results"
        return self.is_spent()

    def is_spent(self) -> bool:
        """Whether the limit of entries or the timeout is reached, whatever was found."""
        if self.cut:
            return True
        if self.entries > MOST_ENTRIES:
            self.cut = f"stopped after {MOST_ENTRIES:,} files"
        elif time.monotonic() > self.until:
            self.cut = f"stopped after {SECONDS:.0f} seconds"
        return bool(self.cut)

    def notes(self) -> list[str]:
        """Notes for the model about what was left out."""
        notes = [f"{count} {what} left out" for what, count in sorted(self.left_out.items())]
        return [f"[{'; '.join([*([self.cut] if self.cut else []), *notes])}]"] if self.cut or notes else []

    def walk(self, path: str, *, recursive: bool) -> Iterator[tuple[str, DirectoryEntry]]:
        """Yield the entries of a directory in order, as paths relative to the root.

        With `recursive` also those of the directories below. Raises `OSError` if the directory itself cannot be listed.
        Unreadable directories below it are left out.
        """
        waiting = [path]
        while waiting:
            directory = waiting.pop()
            try:
                entries = self.root.scandir(directory)
            except OSError:
                if directory == path:
                    raise
                self.left_out["unreadable directories"] += 1
                continue
            below: list[str] = []
            for entry in entries:
                if self.is_spent():
                    return
                self.entries += 1
                inside = entry.name if directory in (".", "./") else f"{directory.rstrip('/')}/{entry.name}"
                yield inside, entry
                if recursive and entry.kind == "directory" and entry.name not in _NOT_LOOKED_INTO:
                    below.append(inside)
            waiting.extend(reversed(below))


def name_filter(pattern: str) -> Callable[[str, str], bool]:
    """Return a test of (path below the directory, name). Globs with a `/` match the path, others the name.

    Raises `BadGlob`.
    """
    if not pattern:
        return lambda _path, _name: True
    glob = Glob(pattern)
    if "/" in pattern:
        return lambda path, _name: glob.find(path) is Truth.YES
    return lambda _path, name: glob.find(name) is Truth.YES


def listed_names(looking: FileSearch, path: str, *, recursive: bool, pattern: str) -> list[str]:
    """Names for the model: directories end in `/`, and other entries that are not files are marked."""
    fits = name_filter(pattern)
    start = "" if path in (".", "./") else f"{path.rstrip('/')}/"
    lines: list[str] = []
    for inside, entry in looking.walk(path, recursive=recursive):
        below = inside.removeprefix(start)
        if not fits(below, entry.name):
            continue
        if looking.is_over(len(lines)):
            break
        end = {"directory": "/", "link": " (a link)", "other": " (not a file)"}.get(entry.kind, "")
        lines.append(f"{visible(inside)}{end}")
    return lines


def matching_lines(
    looking: FileSearch, files: Iterator[str], fits: Callable[[str], bool], skip: Callable[[str], bool], most_bytes: int
) -> list[str]:
    """Matching lines of files, as `path:number: line`. `skip` gets the real path of a file."""
    found: list[str] = []
    for path in files:
        if looking.is_over(len(found)):
            break
        data = _content(looking, path, skip, most_bytes)
        if data is None:
            continue
        for number, line in enumerate(data.decode("utf-8", "replace").split("\n"), 1):
            if looking.is_over(len(found)):
                break
            if fits(line.removesuffix("\r")[:_MOST_LINE]):
                text = line.strip()
                text = text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
                found.append(f"{visible(path)}:{number}: {text}")
    return found


def _content(looking: FileSearch, path: str, skip: Callable[[str], bool], most_bytes: int) -> bytes | None:
    """The content of a file, if it is to be searched."""
    try:
        with looking.root.reach(path) as opened:
            if skip(opened.where):
                looking.left_out["files that may hold secrets"] += 1
            elif opened.stat.st_size > most_bytes:
                looking.left_out["files that are too large"] += 1
            elif is_binary(data := opened.read(most_bytes)):
                looking.left_out["files that are not text"] += 1
            else:
                return data
    except OSError:
        looking.left_out["unreadable files"] += 1
    return None
