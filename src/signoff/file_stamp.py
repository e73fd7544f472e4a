"""Detect that a file was changed or replaced, without reading it."""

from __future__ import annotations

import os


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
