"""`DiskSteps`: counts the steps of judging one call, and follows paths for it."""

from __future__ import annotations

from os import getcwd, lstat, readlink
from os.path import join, normpath, split
from stat import S_ISLNK

from signoff.policy.step_count import COSTS, StepCount

_MOST_LINKS = 40
"""As many symlinks Linux follows on the way to one file."""


class DiskSteps(StepCount):
    """What begins to judge a call makes one, and passes it on to whatever looks at the disk for it."""

    __slots__ = ("_real",)

    def __init__(self, most: int | None = None) -> None:
        super().__init__(most)
        self._real: dict[str, str] = {}

    def real(self, path: str) -> str:
        """Return where an absolute path leads, symlinks resolved: as `os.path.realpath`, but each step is counted.

        The directory of each path is resolved once. Raises as `realpath`, and `Unclear` if there is too much, or if
        more links follow each other than a system follows.
        """
        directory, name = split(path)
        if name in ("", ".", ".."):
            return self._resolved(path)
        if (real := self._real.get(directory)) is None:
            real = self._real[directory] = self._resolved(directory)
        self.take(COSTS["status"])
        whole = join(real, name)
        try:
            is_link = S_ISLNK(lstat(whole).st_mode)
        except OSError:
            return whole
        return self._resolved(whole) if is_link else whole

    def _resolved(self, path: str) -> str:
        real, links, open_links = "/" if path.startswith("/") else getcwd(), 0, set[str]()
        left: list[str | tuple[str]] = [*path.split("/")[::-1]]
        while left:
            name = left.pop()
            if isinstance(name, tuple):  # the link was followed to its end
                open_links.discard(name[0])
                continue
            self.take(COSTS["component"])
            if name in ("", "."):
                continue
            if name == "..":
                real = split(real)[0]
                continue
            whole = join(real, name)
            try:
                leads = readlink(whole) if S_ISLNK(lstat(whole).st_mode) else ""
            except OSError:
                leads = ""
            if not leads:
                real = whole
                continue
            if whole in open_links:  # it leads to itself: nothing is there for anybody
                return normpath(join(whole, *(one for one in reversed(left) if isinstance(one, str))))
            links += 1
            if links > _MOST_LINKS:
                self.give_up("it leads through more links than a system follows")
            open_links.add(whole)
            left += [(whole,), *leads.split("/")[::-1]]
            real = "/" if leads.startswith("/") else real
        return real
