"""Judge a path before it is used: whether it is refused, and what the approver should know about it."""

from __future__ import annotations

from dataclasses import dataclass
from posixpath import normpath

from signoff.policy.phrases import shown
from signoff.policy.places import KERNEL, is_kernel_place, path_trouble, runs_later
from signoff.policy.secret import secret_place
from signoff.toolsets.builtin.files.root_directory import Outside, Root
from signoff.toolsets.builtin.named_programs import changed_by

OUTSIDE = "it leads outside the root directory"
RUN_BY_NAME = "a shell of this project runs programs from there by name"


@dataclass(frozen=True, slots=True)
class Judged:
    """A path in a call, judged."""

    path: str
    """The path as it was written, relative to the root."""
    where: str = ""
    """Where it really leads; empty if unknown."""
    refused: str = ""
    """Why the tool will refuse it."""
    secret: str = ""
    """Why it must not be read without approval, as words that follow the path."""
    runs: str = ""
    """Why a write there counts as running code."""
    guarded: bool = False
    """Whether a write changes programs that a shell runs by name."""

    @property
    def reason(self) -> str:
        """The reason to show to the approver."""
        parts = [f"{shown(self.path)} {self.secret}"] if self.secret else []
        parts += [f"writing {shown(self.path)} counts as running code: {self.runs}"] if self.runs else []
        return "; ".join(parts)


class Judge:
    """Judges paths below one root."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self.guarded: tuple[str, ...] = ()
        """Real paths of directories whose programs a shell runs by name."""
        self._own = secret_place(root.path)
        self._start = f"{root.path.rstrip('/')}/"
        self._is_above_kernel = not is_kernel_place(self._start)

    def of(self, path: str, *, writes: bool, follow: bool = True) -> Judged:
        """Judge a path as it is now. The tool must check again with `trouble_at` when it uses the path.

        Without `follow`, the name itself is judged, even if it is a symlink.
        """
        refused, inside = self.trouble(path)
        if refused:
            return Judged(path, "", refused, secret_place(path), runs_later(path) if writes else "")
        where = ""
        try:
            where = self._root.where(inside if follow else inside.rstrip("/"), follow=follow)
            refused = self.trouble_at(inside, where, writes=writes)
        except Outside:
            refused = OUTSIDE
        except (OSError, ValueError):
            pass  # the tool will run into the same error and report it
        return Judged(
            inside,
            where,
            refused,
            self.secret(inside) or (self.secret(where) if where else ""),
            (runs_later(inside) or runs_later(where) or self._runs(inside) or self._runs(where)) if writes else "",
            bool(writes and (self._runs(inside) or self._runs(where))),
        )

    def _runs(self, inside: str) -> str:
        """Why a write below the root changes programs that a shell runs by name."""
        path = normpath(self._start + inside)
        return RUN_BY_NAME if changed_by(path, self.guarded, self._root.path) else ""

    def trouble(self, path: str) -> tuple[str, str]:
        """Return why a path is refused as written (empty if it is not), and the path relative to the root."""
        try:
            inside = self._root.relative(path)
        except ValueError:
            return path_trouble(path) or "it is not a path", path
        except Outside:
            return path_trouble(path) or OUTSIDE, path
        return path_trouble(inside), inside

    def trouble_at(self, inside: str, where: str, *, writes: bool) -> str:
        """Why a path may not lead there. A person approves the name, so a symlink must not lead to something else."""
        if self._is_above_kernel and is_kernel_place(self._start + where):
            return KERNEL
        if normpath(inside) == where:
            return ""
        if secret := self.secret(where):
            return f"it leads to {shown(where)}, which {secret}; use that path itself"
        if writes and (runs := runs_later(where) or self._runs(where)):
            return f"it leads to {shown(where)}; use that path itself: writing there counts as running code: {runs}"
        return ""

    def secret(self, where: str) -> str:
        """Why a path below the root must not be read without approval; empty if it may.

        If the root itself is a secret place, that does not count: it was chosen as the root.
        """
        absolute = secret_place(normpath(self._start + where))
        return secret_place(where) or ("" if absolute == self._own else absolute)
