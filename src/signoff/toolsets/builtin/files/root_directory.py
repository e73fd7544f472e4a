"""Access to the files below one directory, without path traversal or races between check and use (TOCTOU).

`Root` checks and uses the same open file. It opens with `openat2` if the kernel has it, and walks step by step if not.
Symlinks are followed as long as they stay below the root. An absolute symlink, and a path that leaves the root and
comes back, are refused even if they end inside. Only regular files are read and written, and nothing ever blocks on a
pipe or a device.

Two limits, both of which need permissions outside the root: a hard link to a file elsewhere can be read (but not
written through, because a write replaces the file), and file systems mounted below the root count as inside.
"""

from __future__ import annotations

import errno
import os
import weakref
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Literal

from signoff.toolsets.builtin.files.spot import SAFELY, DirectoryEntry, Opened, Spot, entry_of, plain
from signoff.toolsets.builtin.files.system_calls import has_open_beneath, open_beneath
from signoff.toolsets.builtin.files.walk import DIRECTORY, MOST_LINKS, walk_beneath

How = Literal["auto", "openat2", "walk"]
_DELETED = " (deleted)"


class Outside(PermissionError):
    """The path leads out of the root."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.EXDEV, "leads outside the root directory", path)


class Root:
    """A directory that is held open. Paths are relative to it; absolute paths have to start with it."""

    def __init__(self, path: str | os.PathLike[str], *, how: How = "auto") -> None:
        """Raises `OSError` if there is no such directory. `how` is for tests: how to open files."""
        given = os.path.abspath(str(path))
        self._fd = os.open(given, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._closing = weakref.finalize(self, os.close, self._fd)
        self.path = os.path.realpath(given)
        self._starts = [_names(given), _names(self.path)]
        works = how != "walk" and has_open_beneath(self._fd)
        if how == "openat2" and not works:
            raise OSError(errno.ENOSYS, "openat2 does not work here")
        self.how: Literal["openat2", "walk"] = "openat2" if works else "walk"

    def close(self) -> None:
        """Close the directory. Nothing can be opened afterwards."""
        self._closing()

    def relative(self, path: str) -> str:
        """The path relative to the root. Raises `Outside` for an absolute path that does not start with the root."""
        if "\0" in path or not path:
            raise ValueError("a path must not be empty or hold a NUL character")
        if not path.startswith("/"):
            return path
        names = _names(path)
        for start in self._starts:
            if names[: len(start)] == start and not path.startswith("//"):
                rest = "/".join(names[len(start) :])
                return f"{rest}/" if rest and path.endswith("/") else rest or "."
        raise Outside(path)

    def open(self, path: str, flags: int = os.O_RDONLY, mode: int = 0o666, *, directory: bool = False) -> int:
        """Open a regular file, or a directory with `directory`, and return its file descriptor."""
        return self.reach(path, flags, mode, directory=directory).fd

    def reach(
        self, path: str, flags: int = os.O_RDONLY, mode: int = 0o666, *, directory: bool | None = False
    ) -> Opened:
        """As `open`, but also return the real path. With `directory=None`, both files and directories are accepted.

        Raises `Outside`, `NotPlain`, or the error of the system.
        """
        empty = flags & os.O_TRUNC
        flags = (flags & ~os.O_TRUNC) | (os.O_DIRECTORY if directory else 0)
        fd, where = self._open(path, flags, mode)
        opened = plain(fd, path, where, directory=directory)
        if empty:
            os.ftruncate(fd, 0)
        return opened

    def _open(self, path: str, flags: int, mode: int = 0) -> tuple[int, str]:
        inside = self.relative(path)
        try:
            if self.how == "walk":
                return walk_beneath(self._fd, inside, flags | SAFELY, mode)
            fd = open_beneath(self._fd, os.fsencode(inside), flags | _safe_with(flags), mode)
        except OSError as error:
            if error.errno == errno.EXDEV:
                raise Outside(path) from None
            raise type(error)(error.errno, error.strerror, path) from None
        try:
            return fd, self._where(fd, path)
        except BaseException:
            os.close(fd)
            raise

    def _where(self, fd: int, path: str) -> str:
        """The real path of an open file, relative to the root, as the kernel reports it now."""
        root, real = (os.readlink(f"/proc/self/fd/{one}") for one in (self._fd, fd))
        if real.endswith(_DELETED) and os.fstat(fd).st_nlink == 0:
            real = real.removesuffix(_DELETED)
        if real == root:
            return "."
        start = root if root.endswith("/") else f"{root}/"
        if not real.startswith(start):
            raise Outside(path)  # moved out of the root after it was opened
        return real.removeprefix(start)

    @contextmanager
    def spot(self, path: str, *, follow: bool = True, parents: bool = False) -> Generator[Spot]:
        """Yield the last name of a path in its open directory. With `follow`, a symlink of that name is followed.

        With `parents`, missing directories are created. Raises `IsADirectoryError` if the path does not end in a name.
        """
        inside = self.relative(path)
        for _ in range(MOST_LINKS):
            head, name = _split(inside, path)
            if parents:
                self.mkdir(head)
            fd, where = self._open(head, DIRECTORY & ~os.O_NOFOLLOW)
            try:
                target = _link(fd, name) if follow else None
                if target is None:
                    yield Spot(fd, name, name if where == "." else f"{where}/{name}")
                    return
            finally:
                os.close(fd)
            if target.startswith("/"):
                raise Outside(path)
            inside = f"{head}/{target}"
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)

    def where(self, path: str, *, follow: bool = True) -> str:
        """Resolve where a path really leads below the root, even if nothing exists there yet.

        Without `follow`, a symlink in the last place is not resolved.
        """
        inside = self.relative(path)
        if not follow:
            head, name = _split(inside, path)
            directory = self.where(head)
            return name if directory == "." else f"{directory}/{name}"
        names = _names(inside)
        for end in range(len(names), -1, -1):
            if ".." in names[end:]:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            found = self._found("/".join(names[:end]) or ".", path)
            if found is not None:
                return "/".join([*([] if found == "." else [found]), *names[end:]]) or "."
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)

    def _found(self, inside: str, path: str) -> str | None:
        """The real path of something that exists. A dangling symlink counts as its target. None if there is nothing."""
        try:
            if inside.rpartition("/")[2] not in (".", ".."):
                with self.spot(inside) as spot:
                    return spot.where
            fd, where = self._open(inside, DIRECTORY & ~os.O_NOFOLLOW)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except Outside:
            raise Outside(path) from None
        os.close(fd)
        return where

    def stat(self, path: str) -> os.stat_result:
        """The status of a regular file or directory; symlinks are followed."""
        with self.reach(path, directory=None) as opened:
            return opened.stat

    def scandir(self, path: str, *, most: int = 100_000) -> list[DirectoryEntry]:
        """The entries of a directory, sorted by name."""
        with self.reach(path, directory=True) as opened, os.scandir(opened.fd) as found:
            entries = [entry_of(item) for item, _ in zip(found, range(most), strict=False)]
        return sorted(entries, key=lambda entry: entry.name)

    def mkdir(self, path: str) -> None:
        """Create a directory and its missing parents."""
        names = _names(self.relative(path))
        for end in range(1, len(names) + 1):
            inside = "/".join(names[:end])
            with suppress(FileNotFoundError):
                os.close(self._open(inside, DIRECTORY & ~os.O_NOFOLLOW)[0])
                continue
            if ".." in names[end:]:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            fd, _ = self._open("/".join(names[: end - 1]) or ".", DIRECTORY & ~os.O_NOFOLLOW)
            try:
                with suppress(FileExistsError):  # created meanwhile; the next step checks that it is a directory inside
                    os.mkdir(names[end - 1], dir_fd=fd)
            finally:
                os.close(fd)

    def replace(self, path: str, data: bytes) -> None:
        """Write a file atomically, and create missing parent directories."""
        with self.spot(path, parents=True) as spot:
            spot.write(data)

    def unlink(self, path: str) -> None:
        """Remove a file, a symlink itself, or an empty directory."""
        with self.spot(path, follow=False) as spot:
            spot.remove()

    def rename(self, source: str, target: str, *, overwrite: bool = False) -> None:
        """Move a file or directory, and create missing parent directories of the target."""
        with self.spot(source, follow=False) as old, self.spot(target, follow=False, parents=True) as new:
            old.move(new, overwrite=overwrite)


def _safe_with(flags: int) -> int:
    """The flags to add for `openat2`. With O_PATH it accepts neither O_NONBLOCK nor O_NOCTTY."""
    return os.O_CLOEXEC if flags & getattr(os, "O_PATH", 0) else SAFELY


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]


def _split(inside: str, path: str) -> tuple[str, str]:
    """The directory and the last name of a path."""
    head, _, name = inside.rpartition("/")
    if name in ("", ".", ".."):
        raise IsADirectoryError(errno.EISDIR, "names a directory, not a file", path)
    return head or ".", name


def _link(directory: int, name: str) -> str | None:
    try:
        return os.readlink(name, dir_fd=directory)
    except OSError:
        return None
