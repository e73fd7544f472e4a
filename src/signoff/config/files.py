"""Files and where they are: the project's, the user's own rules, and whose they may be."""

from __future__ import annotations

import os
from pathlib import Path

from signoff.errors import Place, WrongFile
from signoff.policy.composer import LARGEST_TEXT

PROJECT_FILE = "signoff.yaml"


def find_project(start: str | None = None) -> str | None:
    """The nearest `signoff.yaml`, in `start` (default: the working directory) or above it; None where there is none.

    Raises `WrongFile` where it belongs to somebody else: whoever can write into a folder above could else decide what
    agents may do here.
    """
    first = Path(os.path.abspath(start if start is not None else "."))
    for folder in (first, *first.parents):
        file = folder / PROJECT_FILE
        if file.is_file():
            check_owner(str(file))
            return PROJECT_FILE if start is None and folder == first else str(file)
    return None


def check_owner(file: str) -> None:
    """Refuse a file, or a link to it, that belongs to another user than this one or root."""
    if not hasattr(os, "getuid"):  # Windows keeps rights in another way
        return
    mine = {os.getuid(), 0}
    for owner in (os.lstat(file).st_uid, os.stat(file).st_uid):
        if owner not in mine:
            raise WrongFile(
                f"it belongs to another user (uid {owner}), who would decide what agents may do",
                place=Place(file),
                fix="name a file of your own with --policy FILE, or make it yours with chown",
            )


def user_file() -> str | None:
    """Where a user keeps rules that hold in every project; None where there is no home folder."""
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
