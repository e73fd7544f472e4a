"""Files and where they are: the project's, the user's own rules, and whose they may be."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from signoff.errors import Place, WrongFile
from signoff.policy.composer import LARGEST_TEXT

PROJECT_FILE = "signoff.yaml"


def find_project(start: str | None = None) -> str | None:
    """The nearest `signoff.yaml`, in `start` (default: the working directory) or above it; None where there is none.

    Raises `WrongFile` if it is not a readable regular file or belongs to another user: otherwise anybody who can write
    to a directory above could decide what agents may do here.
    """
    found = nearest_project(start)
    if found is not None:
        check_owner(found)
    return found


def nearest_project(start: str | None = None) -> str | None:
    """As `find_project`, whoever it belongs to."""
    first = Path(os.path.abspath(start if start is not None else "."))
    for directory in (first, *first.parents):
        file = str(directory / PROJECT_FILE)
        if _is_there(file):
            check_regular(file)
            return PROJECT_FILE if start is None and directory == first else file
    return None


def _is_there(file: str) -> bool:
    """Whether anything has this name: also what leads nowhere, for one above must not decide in its place."""
    try:
        os.lstat(file)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise WrongFile(f"this cannot be accessed: {reason}", place=Place(file)) from error
    return True


def check_regular(file: str) -> None:
    """Refuse a name that stands for no regular file: a directory, a pipe that never ends, a link that leads nowhere."""
    try:
        mode = os.stat(file).st_mode
    except FileNotFoundError as error:
        if not os.path.islink(file):
            return  # whoever reads it says so
        raise WrongFile("this symbolic link is broken", place=Place(file), fix="remove it, or repair it") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise WrongFile(f"this cannot be read: {reason}", place=Place(file)) from error
    if not stat.S_ISREG(mode):
        what = "a directory" if stat.S_ISDIR(mode) else "no regular file"
        raise WrongFile(f"this is {what}", place=Place(file), fix="remove it, or write a file in its place")


def check_owner(
    file: str, *, fix: str = "name a file of your own with --policy FILE, or make it yours with chown"
) -> None:
    """Refuse a file, or a link to it, that belongs to another user than this one or root."""
    if not hasattr(os, "getuid"):  # Windows keeps rights in another way
        return
    mine = {os.getuid(), 0}
    for owner in (os.lstat(file).st_uid, os.stat(file).st_uid):
        if owner not in mine:
            what = f"it belongs to another user (uid {owner}), who could change what agents may do"
            raise WrongFile(what, place=Place(file), fix=fix)


def own_text(file: str, *, missing: str = "") -> str:
    """The text of a regular file of this user or root. `missing`: what to do where there is none."""
    if _is_there(file):
        check_regular(file)
        check_owner(file, fix="make it yours with chown, or remove it")
    return text_of(file, fix=missing)


def from_here(path: str | os.PathLike[str]) -> str:
    """A path as people say it: from the working directory, unless it is shorter from the root."""
    whole = os.path.abspath(path)
    return min(os.path.relpath(whole), whole, key=len)


def user_file() -> str | None:
    """Where a user keeps rules that hold in every project; None where there is no home directory."""
    config = os.environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(config):  # as the standard says: a relative one is to be ignored
        config = os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(config, "signoff", "policy.yaml") if os.path.isabs(config) else None


def text_of(file: str, *, fix: str = "`signoff init` writes a first one") -> str:
    """What a file holds; raises `WrongFile` where it cannot be read as text. `fix`: what to do where there is none."""
    try:
        with open(file, "rb") as stream:
            content = stream.read(4 * LARGEST_TEXT + 1)
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
