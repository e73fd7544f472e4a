"""Open a file that somebody else may have replaced: a pipe never holds up its reader."""

from __future__ import annotations

import errno
import os
import stat
from typing import BinaryIO

_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_CLOEXEC", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


def open_regular(file: str | os.PathLike[str], *, follow: bool = True) -> BinaryIO:
    """Open a regular file to read. Raises `OSError` for anything else; with `follow=False`, also for a symlink."""
    descriptor = os.open(file, _FLAGS | (0 if follow else _NO_LINK))
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(file))
        raise OSError(errno.EINVAL, "it is not a regular file", os.fspath(file))
    return open(descriptor, "rb")


def bytes_of(file: str | os.PathLike[str], most: int = -1, *, follow: bool = True) -> bytes:
    """Read a regular file, or its first bytes. Raises as `open_regular`."""
    with open_regular(file, follow=follow) as opened:
        return opened.read(most)
