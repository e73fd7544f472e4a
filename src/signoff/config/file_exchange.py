"""Replace the content of a file that people edit: atomically, and only if it is still what was read."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress

from signoff.config.files import check_owner, check_regular, text_of
from signoff.errors import Place, WrongFile

_SAID = "nothing was written"


def exchange(file: str, before: str, after: str) -> None:
    """Replace the content `before` of a file by `after`. A symlink is kept, and its target is replaced.

    Owner and permissions stay as they are. Raises `WrongFile` if the file has changed since, or cannot be written;
    in either case it is unchanged.
    """
    check_regular(file)
    check_owner(file)
    target = os.path.realpath(file)
    _check_same(file, target, before)
    try:
        _exchange(file, target, before, after)
    except OSError as error:
        what = f"this cannot be written: {error.strerror or error}; {_SAID}"
        raise WrongFile(what, place=Place(file), fix="the file and its directory have to be yours to write") from error


def _exchange(file: str, target: str, before: str, after: str) -> None:
    was = os.stat(target)
    if was.st_nlink > 1:
        what = f"this file has {was.st_nlink} names (hard links), and would lose the others; {_SAID}"
        raise WrongFile(what, place=Place(file), fix="change it by hand")
    if not os.access(target, os.W_OK):  # write permission for the directory would be enough to replace it
        what = f"this file is write-protected; {_SAID}"
        raise WrongFile(what, place=Place(file), fix="chmod u+w, if you may change it")
    handle, beside = tempfile.mkstemp(dir=os.path.dirname(target), prefix=f".{os.path.basename(target)}-")
    try:
        with open(handle, "wb") as out:
            out.write(after.encode("utf-8"))
            out.flush()
            made = os.fstat(out.fileno())
            if hasattr(os, "fchown") and (made.st_uid, made.st_gid) != (was.st_uid, was.st_gid):
                os.fchown(out.fileno(), was.st_uid, was.st_gid)
            os.chmod(beside, stat.S_IMODE(was.st_mode))
            os.fsync(out.fileno())
        with _alone(target):
            _check_same(file, target, before)
            os.replace(beside, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise
    _settle(os.path.dirname(target))


@contextmanager
def _alone(target: str) -> Generator[None]:
    """Lock the file against another process that replaces it at the same time, where the system supports `flock`."""
    with open(target, "rb") as held:
        with suppress(ImportError, OSError):
            import fcntl

            fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _check_same(file: str, target: str, before: str) -> None:
    if os.path.realpath(file) != target or text_of(target) != before:
        what = f"this file changed in the meantime; {_SAID}"
        raise WrongFile(what, place=Place(file), fix="look at it, and make the rule again")


def _settle(directory: str) -> None:
    """Sync the directory, so that the new file survives a power failure, where the system supports it."""
    with suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
