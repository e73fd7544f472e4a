"""Write the files of an import: all or nothing, and existing files are replaced only with `overwrite`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum

from signoff.config.files import link_on_the_way, text_of
from signoff.config.worker_files import DIRECTORY
from signoff.config.worker_text import SUFFIXES
from signoff.errors import WrongFile, WrongUse


class Change(StrEnum):
    NEW = "new"
    SAME = "same"
    REPLACED = "replaced"


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """One file of an import, and its current content."""

    name: str
    """The path below the target directory."""
    path: str
    text: str
    before: str | None

    @property
    def change(self) -> Change:
        if self.before is None:
            return Change.NEW
        return Change.SAME if self.before == self.text else Change.REPLACED


def plan(into: str, files: Mapping[str, str]) -> list[ImportedFile]:
    """Each file with its current content. Raises if something is in the way that is never replaced."""
    planned = [ImportedFile(name, path := _path(into, name), text, _before(path, into)) for name, text in files.items()]
    for one in planned:
        stem, suffix = os.path.splitext(one.path)
        for other in SUFFIXES:
            if other != suffix and one.name.startswith(f"{DIRECTORY}/") and os.path.lexists(stem + other):
                what = f"{stem}{other} describes a worker of the same name as {one.path}; nothing was written"
                raise WrongUse(f"{what}\n  move it away, or name another directory with --into")
    return planned


def write(planned: list[ImportedFile], into: str, *, overwrite: bool) -> None:
    """Write new files and, with `overwrite`, changed ones. If one fails, all changes are rolled back."""
    replaced = [one.path for one in planned if one.change is Change.REPLACED]
    if replaced and not overwrite:
        what = f"{', '.join(replaced)}: already there, and different; nothing was written"
        raise WrongUse(f"{what}\n  look at it with --diff; then --overwrite replaces it, or --into names another place")
    done: list[ImportedFile] = []
    made: list[str] = []
    try:
        for one in planned:
            if _before(one.path, into) != one.before:
                raise WrongUse(f"{one.path} changed in the meantime; no file was changed\n  try again")
            if one.change is not Change.SAME:
                made += _directories(os.path.dirname(one.path))
                _put(one.path, one.text, new=one.change is Change.NEW)
                done.append(one)
    except BaseException as error:
        for one in reversed(done):
            _undo(one)
        for directory in reversed(made):
            with suppress(OSError):  # somebody else may use it by now
                os.rmdir(directory)
        if isinstance(error, OSError):
            what = f"{error.filename or into} cannot be written: {error.strerror}; no file was changed"
            raise WrongUse(what) from error
        raise


def _path(into: str, name: str) -> str:
    return os.path.normpath(os.path.join(into, *name.split("/")))


def _before(path: str, into: str) -> str | None:
    """The current content of a file; None if there is none. Symlinks, and anything but a file, are never written to."""
    directory = os.path.dirname(path)
    if link := link_on_the_way(path, into):
        raise WrongUse(f"{link} is a link; nothing was written\n  name another directory with --into")
    if os.path.lexists(directory) and not os.path.isdir(directory):
        raise WrongUse(f"{directory} is not a directory; nothing was written\n  move it away, or use --into")
    if not os.path.lexists(path):
        return None
    if os.path.islink(path) or not os.path.isfile(path):
        raise WrongUse(f"{path} is a link, or not a regular file; nothing was written\n  move it away, or use --into")
    try:
        return text_of(path)
    except WrongFile as error:
        raise WrongUse(f"{error}; nothing was written") from error


def _directories(directory: str) -> Iterator[str]:
    """Create a directory and its parents; yields those that were created."""
    missing: list[str] = []
    while directory and not os.path.isdir(directory):
        missing.append(directory)
        directory = os.path.dirname(directory)
    for one in reversed(missing):
        os.mkdir(one)
        yield one


def _put(path: str, text: str, *, new: bool) -> None:
    """Write a file completely or not at all. A new file must not exist yet."""
    beside = path if new else f"{path}.new-{os.getpid()}"
    with open(beside, "x", encoding="utf-8", newline="\n") as out:
        try:
            out.write(text)
            out.flush()
            if not new:
                os.replace(beside, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(beside)
            raise


def _undo(one: ImportedFile) -> None:
    with suppress(OSError):
        if one.before is None:
            os.unlink(one.path)
        else:
            _put(one.path, one.before, new=False)
