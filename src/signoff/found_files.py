"""Find the files that a command would: by a file pattern of a shell, or everything below a directory."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator

from signoff.disk_steps import DiskSteps
from signoff.ignore_files import IgnoreFiles
from signoff.policy.shell.file_patterns import components, fits_name, tokens_of
from signoff.policy.step_count import COSTS, Unclear
from signoff.regular_file import bytes_of

MOST_PARTS = 200
"""Most names between slashes of a pattern that is expanded."""
_MOST_TRACKED = 100_000
"""The most files in an index of git that is read."""
_LINK = 0o120000
"""The type of a symlink, in the mode of a file that git tracks."""
MOST_INDEX = 64 * 1024 * 1024
"""The largest index of git that is read, in bytes."""
PUBLISHED = frozenset({".git", "node_modules", "site-packages"})
"""Directories that hold no secrets of the user: what others have published, and git's own files."""


def expand(
    pattern: str,
    directory: str,
    *,
    most: int = 10_000,
    stop: Callable[[], bool] = lambda: False,
    count: DiskSteps,
    deep: bool = False,
) -> list[str]:
    """The files that `pattern` matches, as bash expands it with its default settings; empty if there are none.

    They are relative to `directory`, and sorted by code point. With `deep`, `**` between slashes stands for any number
    of directories, also behind symlinks, as in some shells.

    Raises `Unclear` if there are more than `most`, if the count or the time ends, or if shells differ.
    """
    if "\0" in pattern:
        raise Unclear("holds a NUL")
    parts = components(pattern)
    if len(parts) > MOST_PARTS:
        raise Unclear(f"has more than {MOST_PARTS} parts")
    found: list[str] = []
    for path in _Search(directory, stop, count, deep).search("", parts):
        found.append(path)
        if len(found) > most:
            raise Unclear(f"stands for more than {most:,} files")
    return sorted(found, key=os.fsencode)


def files_below(
    top: str,
    *,
    hidden: bool = True,
    published: bool = True,
    count: DiskSteps,
) -> Iterator[tuple[str, str]]:
    """Yield each file below a directory, relative to it, and where it leads if it is a symlink or reached by one.

    Symlinks to directories are followed, each directory once. `hidden` names can be left out, but for those that an
    ignore file lets in, and so can directories with `published` files. Raises `Unclear` if the count ends.
    """
    waiting = deque([("", "")])
    seen = {count.real(top)}
    ignored = IgnoreFiles(count)
    while waiting:
        directory, linked = waiting.popleft()
        count.take(COSTS["directory"])
        try:
            with os.scandir(os.path.join(top, directory)) as entries:
                for entry in entries:
                    count.take(COSTS["entry"])
                    if not hidden and entry.name.startswith(".") and not ignored.lets_in(entry.path):
                        continue
                    path = os.path.join(directory, entry.name)
                    if entry.is_dir(follow_symlinks=False):
                        leads = os.path.join(linked, entry.name) if linked else ""
                        waiting.extend([(path, leads)] if published or entry.name not in PUBLISHED else [])
                        continue
                    is_link = entry.is_symlink()
                    leads = count.real(entry.path) if is_link else os.path.join(linked, entry.name) if linked else ""
                    yield path, leads
                    if is_link and leads not in seen and entry.is_dir():
                        seen.add(leads)  # some programs follow symlinks
                        waiting.append((path, leads))
        except OSError:
            continue  # the command cannot read it either


def tracked_below(top: str, count: DiskSteps) -> Iterator[tuple[str, str]]:
    """Yield each file below a directory that git tracks, relative to it, and its real path. Symlinks are no files.

    Raises `Unclear` if git's index cannot be read completely.
    """
    here = count.real(top)
    count.take(COSTS["status"] * here.count("/"))
    repository = next((one for one in _upwards(here) if os.path.lexists(os.path.join(one, ".git"))), "")
    if not repository or here == os.sep:
        raise Unclear("is in no repository, or in one that is only known when it runs")
    begin = os.path.relpath(here, repository) + os.sep if here != repository else ""
    for path, is_link in _index(_git_directory(os.path.join(repository, ".git"))):
        count.take(COSTS["entry"])
        if not path.startswith(begin):
            continue
        real = os.path.join(repository, path)
        if is_link:  # unless there is a file by now
            count.take(COSTS["status"])
            if os.path.islink(real):
                continue
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
    named = bytes_of(dot, 4096).decode("utf-8", "surrogateescape").removeprefix("gitdir:").strip()
    return os.path.join(os.path.dirname(dot), named)


def _index(directory: str) -> Iterator[tuple[str, bool]]:
    """Yield the paths in the index of a repository (versions 2 and 3; `git help gitformat-index`), and whether each is
    tracked as a symlink.
    """
    data = bytes_of(os.path.join(directory, "index"), MOST_INDEX + 1)
    version, count = int.from_bytes(data[4:8]), int.from_bytes(data[8:12])
    if data[:4] != b"DIRC" or version not in (2, 3) or len(data) > MOST_INDEX or count > _MOST_TRACKED:
        raise Unclear("would have to be checked against an index of git that signoff does not read")
    at = 12
    for _ in range(count):
        start = at + 62 + 2 * (version == 3 and data[at + 60] >> 6 & 1)
        end = data.index(b"\0", start)
        yield os.fsdecode(data[start:end]), int.from_bytes(data[at + 24 : at + 28]) & 0o170000 == _LINK
        at += (end - at) // 8 * 8 + 8
    if data.find(b"link", at) >= 0 or data.find(b"sdir", at) >= 0:
        raise Unclear("would have to be checked against an index of git that is not complete")


class _Search:
    def __init__(self, directory: str, stop: Callable[[], bool], count: DiskSteps, deep: bool) -> None:
        self._directory = directory
        self._deep = deep
        self._stop = stop
        self._count = count

    def search(self, before: str, parts: list[str]) -> Iterator[str]:
        """Yield paths that start with `before` and continue with matches of the parts."""
        part, rest = parts[0], parts[1:]
        if self._deep and len(part) > 1 and not part.strip("*"):
            while rest and len(rest[0]) > 1 and not rest[0].strip("*"):  # `**/**/` stands for no more than `**/`
                rest = rest[1:]
            for below in self._directories(before):
                yield from self.search(below, rest or ["*"])
            return
        tokens = tokens_of(part)
        if all(isinstance(token, str) and token[0] == "\\" for token in tokens):
            path = before + "".join(str(token)[1:] for token in tokens)
            names = [path] if rest or self._is_there(path) else []
        else:
            names = [before + name for name in self._names(before) if fits_name(tokens, name, self._count)]
        for path in names:
            if not rest:
                yield path
            elif rest == [""]:
                self._count.take(COSTS["status"])
                if os.path.isdir(os.path.join(self._directory, path)):
                    yield f"{path}/"
            else:
                yield from self.search(f"{path}/", rest)

    def _directories(self, top: str) -> Iterator[str]:
        """Yield the prefix of `top` and of each directory below that is not hidden. A symlink is followed once."""
        waiting, followed = deque([top]), set[str]()
        while waiting:
            here = waiting.popleft()
            yield here
            for name in self._names(here):
                path = os.path.join(self._directory, here, name)
                if name.startswith("."):
                    continue
                self._count.take(2 * COSTS["status"])
                if not os.path.isdir(path):
                    continue
                if os.path.islink(path):
                    real = self._count.real(path)
                    if real in followed:
                        continue
                    followed.add(real)
                waiting.append(f"{here}{name}/")

    def _is_there(self, path: str) -> bool:
        self._count.take(COSTS["status"] + path.count("/"))
        return os.path.lexists(os.path.join(self._directory, path))

    def _names(self, directory: str) -> list[str]:
        self._count.take(COSTS["directory"] + directory.count("/"))
        try:
            names = os.listdir(os.path.join(self._directory, directory))
        except (OSError, ValueError):
            return []
        self._count.take(len(names))
        if self._stop():
            raise Unclear("takes too long to expand")
        return names
