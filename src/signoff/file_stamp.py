"""Detect that a file was changed or replaced, without reading it; and keep what was read until it is."""

from __future__ import annotations

import os
from collections.abc import Callable
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")


def file_stamp(file: str | os.PathLike[str] | None) -> tuple[object, ...]:
    """Return a value that differs after the file is written, replaced, removed or given to another owner.

    The change time (ctime) is part of it, because a writer can keep the size and set the modification time back.
    """
    if file is None:
        return ()
    try:
        found = os.stat(file)
    except OSError:
        return file, os.path.lexists(file)  # a broken symlink is not a missing file
    return file, found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_uid


class Followed(Generic[T]):
    """What was read from files, until they change. What raises while it is read is read again each time."""

    def __init__(self, stamp: Callable[[], object], read: Callable[[], T], *, known: T | None = None) -> None:
        """`stamp` returns a value that differs after a change. `known` was read before, from the files as they are."""
        self._stamp = stamp
        self._read = read
        self._value = known
        self._seen = stamp() if known is not None else None
        self._lock = Lock()

    def now(self) -> T:
        """Return it as it is now. Files that changed are read in this thread."""
        with self._lock:
            stamp = self._stamp()
            if self._seen is None or stamp != self._seen:
                self._seen = None
                self._value = self._read()
                self._seen = stamp if stamp == self._stamp() else None  # else it changed while it was read
            value: T = self._value  # pyright: ignore[reportAssignmentType]
            return value

    async def soon(self) -> T:
        """Return it as it is now. Files that changed are read in a thread."""
        if self._seen is not None and self._stamp() == self._seen:
            value: T = self._value  # pyright: ignore[reportAssignmentType]
            return value
        import asyncio  # a hook reads the settings without an event loop

        return await asyncio.to_thread(self.now)
