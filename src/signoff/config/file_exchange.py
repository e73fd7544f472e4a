"""Another text in a file that people keep: whole or not at all, and only while it is what was read."""

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
    """Put `after` into a file that holds `before`; a link stays, and what it leads to is exchanged.

    Owner and rights stay as they are. Raises `WrongFile` where the file holds something else by now, or
    cannot be written; in either case it is as it was.
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
    if not os.access(target, os.W_OK):  # a directory of one's own would let it be replaced all the same
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
    """Of two processes that exchange a file at once, let one look after the other is done, where the system can."""
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
    """Have the new name outlive a power cut, where the system can."""
    with suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
