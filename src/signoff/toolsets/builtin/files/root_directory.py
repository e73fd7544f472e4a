"""Files below one directory, and none above: what is checked is what is used, because both are the same open file.

`Root` opens with `openat2` where the kernel has it, and walks step by step where it has not. Links are followed as long
as they stay below the root. A link that is absolute, and a path that leaves the root and comes back, are refused even
if they end inside. Only regular files are read and written, and nothing ever waits for a pipe or a device.

Limits, both of which take somebody with rights outside of the root: a hard link to a file elsewhere can be read (not
written through: writing gives the name to a new file), and what is mounted below the root counts as inside.
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
    """One directory, held open. Paths are relative to it; absolute ones have to start with it."""

    def __init__(self, path: str | os.PathLike[str], *, how: How = "auto") -> None:
        """Raises `OSError` where there is no such directory. `how` is for tests: which way to open."""
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
        """Let go of the directory; nothing can be opened afterwards."""
        self._closing()

    def relative(self, path: str) -> str:
        """The path from the root on. Raises `Outside` for an absolute path that does not start with the root."""
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
        """Open a regular file, or with `directory` a directory, and return its descriptor."""
        return self.reach(path, flags, mode, directory=directory).fd

    def reach(
        self, path: str, flags: int = os.O_RDONLY, mode: int = 0o666, *, directory: bool | None = False
    ) -> Opened:
        """As `open`, with where it really is. Either will do where `directory` is None.

        Raises `Outside`, `NotPlain`, or what the system says.
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
        """Where an open file is, as the kernel names it now."""
        root, real = (os.readlink(f"/proc/self/fd/{one}") for one in (self._fd, fd))
        if real.endswith(_DELETED) and os.fstat(fd).st_nlink == 0:
            real = real.removesuffix(_DELETED)
        if real == root:
            return "."
        start = root if root.endswith("/") else f"{root}/"
        if not real.startswith(start):
            raise Outside(path)  # moved out of the root between opening and asking
        return real.removeprefix(start)

    @contextmanager
    def spot(self, path: str, *, follow: bool = True, parents: bool = False) -> Generator[Spot]:
        """The name a path ends in, in its open directory. Links that the name itself is are followed with `follow`.

        Directories that are missing are made with `parents`. Raises `IsADirectoryError` where the path ends in no name.
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
        """Where a path really leads below the root, also if nothing is there yet.

        Without `follow` a link that its last name is stays what it is.
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
        """Where something that is there really is; a link that leads nowhere counts as what it leads to."""
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
        """What is there, links followed; regular files and directories only."""
        with self.reach(path, directory=None) as opened:
            return opened.stat

    def scandir(self, path: str, *, most: int = 100_000) -> list[DirectoryEntry]:
        """What a directory holds, by name."""
        with self.reach(path, directory=True) as opened, os.scandir(opened.fd) as found:
            entries = [entry_of(item) for item, _ in zip(found, range(most), strict=False)]
        return sorted(entries, key=lambda entry: entry.name)

    def mkdir(self, path: str) -> None:
        """Make a directory and those above it, where they are missing."""
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
                with suppress(FileExistsError):  # somebody was quicker; whether it is a directory inside, comes next
                    os.mkdir(names[end - 1], dir_fd=fd)
            finally:
                os.close(fd)

    def replace(self, path: str, data: bytes) -> None:
        """Write a file all at once; directories above it are made."""
        with self.spot(path, parents=True) as spot:
            spot.write(data)

    def unlink(self, path: str) -> None:
        """Remove a file, a link itself, or an empty directory."""
        with self.spot(path, follow=False) as spot:
            spot.remove()

    def rename(self, source: str, target: str, *, overwrite: bool = False) -> None:
        """Move what is at one path to another; directories above that are made."""
        with self.spot(source, follow=False) as old, self.spot(target, follow=False, parents=True) as new:
            old.move(new, overwrite=overwrite)


def _safe_with(flags: int) -> int:
    """The same, but for a mere look at a directory, with which `openat2` takes no other flag."""
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
