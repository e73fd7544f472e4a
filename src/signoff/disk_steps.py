"""`DiskSteps`: counts the steps of judging one call, and follows paths for it."""

from __future__ import annotations

from os import lstat
from os.path import join, realpath, split
from stat import S_ISLNK

from signoff.policy.step_count import COSTS, StepCount


class DiskSteps(StepCount):
    """What begins to judge a call makes one, and passes it on to whatever looks at the disk for it."""

    __slots__ = ("_real",)

    def __init__(self, most: int | None = None) -> None:
        super().__init__(most)
        self._real: dict[str, str] = {}

    def real(self, path: str) -> str:
        """Return where an absolute path leads, symlinks resolved: `os.path.realpath`, counted.

        The directory of each path is resolved once. Raises as `realpath`, and `Unclear` if there is too much.
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
        self.take(COSTS["component"] * (path.count("/") + 1))
        return realpath(path)
