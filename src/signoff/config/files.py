"""Find, check and read files: the project's and the user's own rules. Checks the type and the owner of a file."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from signoff.errors import Place, WrongFile
from signoff.policy.composer import LARGEST_TEXT
from signoff.regular_file import bytes_of

PROJECT_FILE = "signoff.yaml"
OWNER_FIX = "name a file of your own with --policy FILE, or make it yours with chown"


def find_project(start: str | None = None) -> str | None:
    """Find the nearest `signoff.yaml`, in `start` (default: the working directory) or above it; None if there is none.

    Raises `WrongFile` if it is not a readable regular file or belongs to another user: otherwise anybody who can write
    to a directory above could decide what agents may do here.
    """
    found = nearest_project(start)
    if found is not None:
        check_owner(found)
    return found


def nearest_project(start: str | None = None) -> str | None:
    """As `find_project`, whoever the owner is."""
    first = Path(os.path.abspath(start if start is not None else "."))
    for directory in (first, *first.parents):
        file = str(directory / PROJECT_FILE)
        if _is_there(file):
            check_regular(file)
            return PROJECT_FILE if start is None and directory == first else file
    return None


def _is_there(file: str) -> bool:
    """Whether anything has this name. A broken symlink counts, so that a file further up does not replace it."""
    try:
        os.lstat(file)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise WrongFile(f"this cannot be accessed: {reason}", place=Place(file)) from error
    return True


def link_on_the_way(file: str, top: str) -> str:
    """Return the first directory below `top`, on the way to a file, that is a link; empty if there is none.

    What is written below it would be written elsewhere.
    """
    root = Path(os.path.normpath(top))
    below = [parent for parent in Path(os.path.normpath(file)).parents if root in parent.parents]
    return next((str(parent) for parent in reversed(below) if os.path.islink(parent)), "")


def check_regular(file: str) -> None:
    """Refuse anything but a regular file: a directory, a pipe that never ends, a broken symlink."""
    try:
        mode = os.stat(file).st_mode
    except FileNotFoundError as error:
        if not os.path.islink(file):
            return  # the caller reports a missing file
        raise WrongFile("this symbolic link is broken", place=Place(file), fix="remove it, or repair it") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise WrongFile(f"this cannot be read: {reason}", place=Place(file)) from error
    if not stat.S_ISREG(mode):
        what = "a directory" if stat.S_ISDIR(mode) else "no regular file"
        raise WrongFile(f"this is {what}", place=Place(file), fix="remove it, or write a file in its place")


def check_owner(file: str, *, fix: str = OWNER_FIX) -> None:
    """Refuse a file, or a symlink to it, that belongs to a user other than this one or root."""
    if not hasattr(os, "getuid"):  # Windows has other permissions
        return
    mine = {os.getuid(), 0}
    for owner in (os.lstat(file).st_uid, os.stat(file).st_uid):
        if owner not in mine:
            what = f"it belongs to another user (uid {owner}), who could change what agents may do"
            raise WrongFile(what, place=Place(file), fix=fix)


def own_text(file: str, *, missing: str = "") -> str:
    """Read a regular file of this user or root. `missing` says what to do if there is none."""
    check_own(file, fix="make it yours with chown, or remove it")
    return text_of(file, fix=missing)


def check_own(file: str, *, fix: str = OWNER_FIX) -> None:
    """Refuse anything but a regular file of this user or root. A missing file is left to the code that reads it."""
    if _is_there(file):
        check_regular(file)
        check_owner(file, fix=fix)


def from_here(path: str | os.PathLike[str]) -> str:
    """A path for people: relative to the working directory, unless the absolute one is shorter, or as good as that."""
    whole = os.path.abspath(path)
    relative = os.path.relpath(whole)
    return relative if len(relative) < len(whole) - 1 else whole  # from `/`, only the first slash would be missing


def user_file() -> str | None:
    """Path of the user's rules for every project; None without a home directory."""
    config = os.environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(config):  # the XDG standard says to ignore a relative path
        config = os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(config, "signoff", "policy.yaml") if os.path.isabs(config) else None


def text_of(file: str, *, fix: str = "`signoff init` writes a first one") -> str:
    """Read a file; raises `WrongFile` if it cannot be read as text. `fix` says what to do if there is none."""
    try:
        content = bytes_of(file, 4 * LARGEST_TEXT + 1)
    except FileNotFoundError as error:
        raise WrongFile(f"there is no file {file}", fix=fix) from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise WrongFile(f"{file} cannot be read: {reason}") from error
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise WrongFile("this is not UTF-8 text", place=Place(file, line), fix="save the file as UTF-8") from error
