"""Open a path below a directory step by step, for kernels without `openat2`. Symlinks are resolved here."""

from __future__ import annotations

import errno
import os
from collections import deque

MOST_LINKS = 40
"""The most symlinks that Linux follows in one path."""
DIRECTORY = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""Flags to go through a directory. With O_PATH, the permission to list it is not needed."""
_IS_LINK = (errno.ELOOP, errno.ENOTDIR, getattr(errno, "EMLINK", errno.ELOOP))
"""The error codes with which systems refuse to open a symlink."""


def walk_beneath(root: int, path: str, flags: int, mode: int) -> tuple[int, str]:
    """Open a path below `root`. Returns the descriptor and the real path. Raises EXDEV if the path leads outside.

    `..` goes back to the directory that the walk came from, which is held open, so a concurrent rename cannot lead
    outside.
    """
    walk = _DirectoryWalk(root, path)
    try:
        return walk.open_last(flags | os.O_NOFOLLOW, mode), "/".join(walk.names) or "."
    finally:
        walk.close()


class _DirectoryWalk:
    def __init__(self, root: int, path: str) -> None:
        self.root = root
        self.steps = deque(_steps(path))
        self.directories: list[int] = []
        self.names: list[str] = []
        self.links = 0

    @property
    def here(self) -> int:
        return self.directories[-1] if self.directories else self.root

    def close(self) -> None:
        for directory in self.directories:
            os.close(directory)

    def open_last(self, flags: int, mode: int) -> int:
        """Go through all steps and open the last one."""
        while self.steps:
            step = self.steps.popleft()
            if step == "..":
                self._back()
            elif step != "." and not self.steps:
                opened = self._try(step, flags, mode)
                if opened is not None:
                    self.names.append(step)
                    return opened
            elif step != ".":
                directory = self._try(step, DIRECTORY, 0)
                if directory is not None:
                    self.directories.append(directory)
                    self.names.append(step)
        return os.open(".", flags & ~(os.O_CREAT | os.O_EXCL), dir_fd=self.here)

    def _back(self) -> None:
        if not self.directories:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        os.close(self.directories.pop())
        self.names.pop()

    def _try(self, step: str, flags: int, mode: int) -> int | None:
        """Open one step. None if it is a symlink, whose own steps then come next."""
        try:
            opened = os.open(step, flags, mode, dir_fd=self.here)
        except OSError as error:
            if error.errno not in _IS_LINK:
                raise
            refused = error
        else:
            if not flags & getattr(os, "O_PATH", 0) or not _is_link(opened):
                return opened
            os.close(opened)
            refused = OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        try:
            target = os.readlink(step, dir_fd=self.here)
        except OSError:
            raise refused from None  # not a symlink after all
        self.links += 1
        if self.links > MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        if target.startswith("/"):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))
        self.steps.extendleft(reversed(_steps(target)))
        return None


def _is_link(opened: int) -> bool:
    return (os.fstat(opened).st_mode & 0o170000) == 0o120000


def _steps(path: str) -> list[str]:
    """The names in a path. A trailing slash requires a directory, so `.` is appended."""
    steps = [step for step in path.split("/") if step]
    return [*steps, "."] if path.endswith("/") else steps
