"""A name in an open directory (`Spot`) and an open file (`Opened`), with the operations on them."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from signoff.toolsets.builtin.files.system_calls import rename_new

SAFELY = os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
"""Flags that never block on a pipe and never acquire a controlling terminal."""


class NotPlain(PermissionError):
    """The path is neither a regular file nor a directory, or not the one that is needed."""

    def __init__(self, path: str, what: str) -> None:
        super().__init__(errno.EINVAL, what, path)


@dataclass(frozen=True, slots=True)
class DirectoryEntry:
    """One entry of a directory. Symlinks are not followed."""

    name: str
    kind: Literal["file", "directory", "link", "other"]
    size: int = 0


@dataclass(frozen=True, slots=True)
class Opened:
    """An open file or directory, with its real path below the root."""

    fd: int
    where: str
    stat: os.stat_result

    def __enter__(self) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)

    def read(self, most: int) -> bytes:
        """Read at most so many bytes."""
        parts: list[bytes] = []
        while most > 0 and (part := os.read(self.fd, min(most, 1 << 20))):
            parts.append(part)
            most -= len(part)
        return b"".join(parts)


@dataclass(frozen=True, slots=True)
class Spot:
    """A name in an open directory, whether or not it exists."""

    directory: int
    name: str
    where: str
    """Its real path, below the root."""

    def stat(self) -> os.stat_result | None:
        """The status of the entry itself, without following symlinks; None if it does not exist."""
        try:
            return os.stat(self.name, dir_fd=self.directory, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def open(self) -> Opened | None:
        """Open the regular file of that name for reading; None if it does not exist."""
        try:
            opened = os.open(self.name, SAFELY | os.O_RDONLY | os.O_NOFOLLOW, dir_fd=self.directory)
        except FileNotFoundError:
            return None
        return plain(opened, self.where, self.where, directory=False)

    def write(self, data: bytes) -> None:
        """Write a file atomically: a new file replaces the old one and keeps its mode and, where permitted, its owner.

        Raises `PermissionError` if the existing file is not writable.
        """
        before = self._before()
        temporary = f".signoff-{secrets.token_hex(8)}.tmp"
        file = os.open(temporary, SAFELY | os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666, dir_fd=self.directory)
        try:
            try:
                _write_all(file, data)
                if before is not None:
                    with suppress(PermissionError):  # only root can change the owner
                        os.fchown(file, before.st_uid, before.st_gid)
                    os.fchmod(file, stat.S_IMODE(before.st_mode) & 0o777)
                os.fsync(file)
            finally:
                os.close(file)
            os.replace(temporary, self.name, src_dir_fd=self.directory, dst_dir_fd=self.directory)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=self.directory)
            raise
        self._sync()

    def _before(self) -> os.stat_result | None:
        """The status of the file that is replaced; None if there is none yet."""
        there = self.stat()
        if there is None:
            return None
        if not stat.S_ISREG(there.st_mode):
            raise NotPlain(self.where, _kind_words(there.st_mode))
        if not there.st_mode & 0o222:  # also for root, who could write anyway
            raise PermissionError(errno.EACCES, "is read-only", self.where)
        file = os.open(self.name, SAFELY | os.O_WRONLY | os.O_NOFOLLOW, dir_fd=self.directory)
        with plain(file, self.where, self.where, directory=False) as opened:
            return opened.stat

    def remove(self) -> None:
        """Remove the entry. A directory must be empty."""
        there = self.stat()
        if there is not None and stat.S_ISDIR(there.st_mode):
            os.rmdir(self.name, dir_fd=self.directory)
        else:
            os.unlink(self.name, dir_fd=self.directory)
        self._sync()

    def move(self, target: Spot, *, overwrite: bool) -> None:
        """Rename the entry. Without `overwrite`, raises `FileExistsError` if the target exists."""
        if overwrite:
            os.replace(self.name, target.name, src_dir_fd=self.directory, dst_dir_fd=target.directory)
        else:
            rename_new(self.directory, self.name, target.directory, target.name)
        self._sync()
        target._sync()

    def _sync(self) -> None:
        """Sync the directory to disk; some file systems cannot."""
        with suppress(OSError):
            directory = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self.directory)
            try:
                os.fsync(directory)
            finally:
                os.close(directory)


def plain(fd: int, path: str, where: str, *, directory: bool | None) -> Opened:
    """Return the open file if it is of the wanted kind; otherwise close it and raise."""
    try:
        found = os.fstat(fd)
        is_file, is_directory = stat.S_ISREG(found.st_mode), stat.S_ISDIR(found.st_mode)
        if not (is_directory if directory else is_file or (directory is None and is_directory)):
            if is_directory:
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
            raise NotPlain(path, _kind_words(found.st_mode))
    except BaseException:
        os.close(fd)
        raise
    return Opened(fd, where, found)


def _kind_words(mode: int) -> str:
    kinds = {stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFDIR: "a directory", stat.S_IFLNK: "a link"}
    kind = "a regular file" if stat.S_ISREG(mode) else kinds.get(stat.S_IFMT(mode), "a device")
    return f"is {kind}"


def entry_of(item: os.DirEntry[str]) -> DirectoryEntry:
    if item.is_symlink():
        return DirectoryEntry(item.name, "link")
    if item.is_dir(follow_symlinks=False):
        return DirectoryEntry(item.name, "directory")
    try:
        found = item.stat(follow_symlinks=False)
    except OSError:
        return DirectoryEntry(item.name, "other")
    return DirectoryEntry(item.name, "file" if stat.S_ISREG(found.st_mode) else "other", found.st_size)


def _write_all(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]
