"""Find the files that a command would: by a file pattern of a shell, or everything below a directory."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator

from signoff.policy.shell.file_patterns import Unclear, components, fits_name, tokens_of

MOST_ENTRIES = 200_000
"""Most file names that are examined for one pattern, or below one directory."""
MOST_LINKS = 20_000
"""Most entries of a tree that are examined for secrets and links to them; the rest is not checked."""
MOST_INDEX = 64 * 1024 * 1024
"""The largest index of git that is read, in bytes."""
PUBLISHED = frozenset({".git", "node_modules", "site-packages"})
"""Directories that hold no secrets of the user: what others have published, and git's own files."""


def expand(pattern: str, directory: str, *, most: int = 10_000, stop: Callable[[], bool] = lambda: False) -> list[str]:
    """The files that `pattern` matches, as bash expands it with its default settings; empty if there are none.

    They are relative to `directory`, and sorted by code point.

    Raises `Unclear` if there are more than `most`, if it takes too long, or if shells differ.
    """
    if "\0" in pattern:
        raise Unclear("holds a NUL")
    found: list[str] = []
    for path in _Search(directory, stop).search("", components(pattern)):
        found.append(path)
        if len(found) > most:
            raise Unclear(f"stands for more than {most:,} files")
    return sorted(found, key=os.fsencode)


def files_below(
    top: str, *, hidden: bool = True, published: bool = True, budget: Iterator[int] | None = None
) -> Iterator[tuple[str, str]]:
    """Yield each file below a directory, relative to it, and its full path if it is a symlink or reached by one.

    Symlinks to directories are followed, each directory once. `hidden` names and directories with `published` files can
    be left out. With a `budget` of entries, it ends when that is used up; otherwise too many raise `Unclear`.
    """
    waiting = deque([("", False)])
    seen = {os.path.realpath(top)}
    left = iter(range(MOST_ENTRIES)) if budget is None else budget
    while waiting:
        directory, linked = waiting.popleft()  # breadth-first, because a large tree may not be examined completely
        try:
            with os.scandir(os.path.join(top, directory)) as entries:
                for entry in entries:
                    if next(left, None) is None:
                        if budget is None:
                            raise Unclear(f"would have to be checked against more than {MOST_ENTRIES:,} names")
                        return
                    if not hidden and entry.name.startswith("."):
                        continue
                    path = os.path.join(directory, entry.name)
                    if entry.is_dir(follow_symlinks=False):
                        waiting.extend([(path, linked)] if published or entry.name not in PUBLISHED else [])
                        continue
                    yield path, entry.path if linked or entry.is_symlink() else ""
                    if entry.is_symlink() and entry.is_dir() and (real := os.path.realpath(entry.path)) not in seen:
                        seen.add(real)  # some programs follow symlinks
                        waiting.append((path, True))
        except OSError:
            continue  # the command cannot read it either


def tracked_below(top: str) -> Iterator[tuple[str, str]]:
    """Yield each file below a directory that git tracks, relative to it, and its real path. Symlinks are no files.

    Raises `Unclear` if git's index cannot be read completely.
    """
    here = os.path.realpath(top)
    repository = next((one for one in _upwards(here) if os.path.lexists(os.path.join(one, ".git"))), "")
    if not repository or here == os.sep:
        raise Unclear("is in no repository, or in one that is only known when it runs")
    begin = os.path.relpath(here, repository) + os.sep if here != repository else ""
    for path in _index(_git_directory(os.path.join(repository, ".git"))):
        if path.startswith(begin) and not os.path.islink(real := os.path.join(repository, path)):
            yield path.removeprefix(begin), real


def _upwards(directory: str) -> Iterator[str]:
    yield directory
    while directory != os.path.dirname(directory):
        directory = os.path.dirname(directory)
        yield directory


def _git_directory(dot: str) -> str:
    """Return the directory of a repository's own files. In a worktree, `.git` is a file that names it."""
    if os.path.isdir(dot):
        return dot
    with open(dot, encoding="utf-8", errors="surrogateescape") as text:
        named = text.read(4096).removeprefix("gitdir:").strip()
    return os.path.join(os.path.dirname(dot), named)


def _index(directory: str) -> Iterator[str]:
    """Yield the paths in the index of a repository (versions 2 and 3; `git help gitformat-index`)."""
    with open(os.path.join(directory, "index"), "rb") as file:
        data = file.read(MOST_INDEX + 1)
    version, count = int.from_bytes(data[4:8]), int.from_bytes(data[8:12])
    if data[:4] != b"DIRC" or version not in (2, 3) or len(data) > MOST_INDEX or count > MOST_ENTRIES:
        raise Unclear("would have to be checked against an index of git that signoff does not read")
    at = 12
    for _ in range(count):
        start = at + 62 + 2 * (version == 3 and data[at + 60] >> 6 & 1)
        end = data.index(b"\0", start)
        yield os.fsdecode(data[start:end])
        at += (end - at) // 8 * 8 + 8
    if data.find(b"link", at) >= 0 or data.find(b"sdir", at) >= 0:
        raise Unclear("would have to be checked against an index of git that is not complete")


class _Search:
    def __init__(self, directory: str, stop: Callable[[], bool]) -> None:
        self._directory = directory
        self._stop = stop
        self._seen = 0

    def search(self, before: str, parts: list[str]) -> Iterator[str]:
        """Yield paths that start with `before` and continue with matches of the parts."""
        part, rest = parts[0], parts[1:]
        tokens = tokens_of(part)
        if all(isinstance(token, str) and token[0] == "\\" for token in tokens):
            path = before + "".join(str(token)[1:] for token in tokens)
            names = [path] if rest or self._is_there(path) else []
        else:
            names = [before + name for name in self._names(before) if fits_name(tokens, name)]
        for path in names:
            if not rest:
                yield path
            elif rest == [""]:
                if os.path.isdir(os.path.join(self._directory, path)):
                    yield f"{path}/"
            else:
                yield from self.search(f"{path}/", rest)

    def _is_there(self, path: str) -> bool:
        return os.path.lexists(os.path.join(self._directory, path))

    def _names(self, directory: str) -> list[str]:
        try:
            names = os.listdir(os.path.join(self._directory, directory))
        except (OSError, ValueError):
            return []
        self._seen += len(names)
        if self._seen > MOST_ENTRIES:
            raise Unclear(f"would have to be checked against more than {MOST_ENTRIES:,} names")
        if self._stop():
            raise Unclear("takes too long to expand")
        return names
