"""Two Linux system calls that Python lacks: `openat2`, and a rename that never overwrites (`renameat2`)."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import sys
from functools import cache
from typing import Any

NO_MAGIC_LINKS = 0x02
BENEATH = 0x08

_OPENAT2 = 437
"""The system call number, the same on every architecture that Python runs on, except alpha."""
_NO_REPLACE = 1
_TRIES = 1000
"""How often to retry while somebody renames directories (EAGAIN) or a signal interrupts (EINTR)."""


class _How(ctypes.Structure):
    _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))


@cache
def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None


def open_beneath(directory: int, path: bytes, flags: int, mode: int) -> int:
    """Open a path below a directory; symlinks must stay below it too. Raises EXDEV (`OSError`) if it leads outside."""
    how = _How(flags, mode if flags & os.O_CREAT else 0, BENEATH | NO_MAGIC_LINKS)
    for _ in range(_TRIES):
        opened = _libc().syscall(
            ctypes.c_long(_OPENAT2),
            ctypes.c_int(directory),
            ctypes.c_char_p(path),
            ctypes.byref(how),
            ctypes.c_size_t(ctypes.sizeof(how)),
        )
        if opened >= 0:
            return int(opened)
        if ctypes.get_errno() not in (errno.EAGAIN, errno.EINTR):
            break
    number = ctypes.get_errno()
    raise OSError(number, os.strerror(number))


def has_open_beneath(directory: int) -> bool:
    """Whether `openat2` works here, and whether /proc can tell the path of an open file."""
    if _libc() is None or platform.machine() == "alpha":
        return False
    try:
        probe = open_beneath(directory, b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, 0)
    except OSError:  # an old kernel, or a sandbox that forbids the call
        return False
    try:
        os.readlink(f"/proc/self/fd/{probe}")
    except OSError:
        return False
    finally:
        os.close(probe)
    return True


def rename_new(source_directory: int, source: str, target_directory: int, target: str) -> None:
    """Rename only if the target does not exist; otherwise raise `FileExistsError`.

    Without `renameat2` this is not atomic: a file that is created at the target in between is lost.
    """
    call = getattr(_libc(), "renameat2", None)
    if call is not None:
        done = call(source_directory, os.fsencode(source), target_directory, os.fsencode(target), _NO_REPLACE)
        if done == 0:
            return
        number = ctypes.get_errno()
        if number not in (errno.ENOSYS, errno.EINVAL, errno.EPERM):
            raise OSError(number, os.strerror(number))
    try:
        os.stat(target, dir_fd=target_directory, follow_symlinks=False)
    except FileNotFoundError:
        os.rename(source, target, src_dir_fd=source_directory, dst_dir_fd=target_directory)
    else:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
