"""The file tools: list, read, search, write, edit, move and delete, confined to one directory.

`root_directory` prevents path traversal. Failures raise `ToolFailed`: the model sees the error and continues. As a
retry, the second missing file would end the run by default.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.toolsets import ToolsetTool

from signoff.attached.marks import let_through
from signoff.core.counted import counted
from signoff.core.preview import basis_of
from signoff.core.verdict import Effect, Verdict
from signoff.errors import PreviewChanged, WrongUse
from signoff.policy.builtin import READ_TOOLS as READS
from signoff.policy.builtin import WRITE_TOOLS as WRITES
from signoff.policy.builtin import builtin_policy
from signoff.policy.phrases import shown
from signoff.toolsets.builtin.files.diffs import edited, encoded, is_binary
from signoff.toolsets.builtin.files.file_messages import line_test, some_lines, telling
from signoff.toolsets.builtin.files.file_preview import describe, named
from signoff.toolsets.builtin.files.judge import Judge, Judged
from signoff.toolsets.builtin.files.root_directory import Root
from signoff.toolsets.builtin.files.search import FileSearch, listed_names, matching_lines, name_filter
from signoff.toolsets.builtin.files.shown_state import is_as_shown, state_of, state_of_edit
from signoff.toolsets.builtin.files.spot import Opened, Spot
from signoff.toolsets.own_policy import AttachedToolset

CHANGES = "it changes files"
"""The reason for asking about a write that no rule matches."""
READ_ONLY = "these files are read-only: nothing can be written, moved or deleted"

_shown: ContextVar[Mapping[str, str]] = ContextVar("signoff_shown", default=MappingProxyType({}))
"""What the preview of the running call was made from, as a person saw it."""


def filesystem(
    root: str | os.PathLike[str],
    *,
    read_only: bool = False,
    max_bytes: int = 10_000_000,
    max_chars: int = 50_000,
    max_results: int = 500,
    id: str = "filesystem",
) -> FilesToolset:
    """File tools for the directory `root`.

    Files over `max_bytes` are neither read nor written, an answer has at most `max_chars` characters, and a list or a
    search at most `max_results` lines. Raises `OSError` if there is no such directory.
    """
    if not isinstance(root, str | os.PathLike):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise WrongUse(f"root={root!r}: it must be the path of a directory")
    for name, limit in (("max_bytes", max_bytes), ("max_chars", max_chars), ("max_results", max_results)):
        if limit < 1:
            raise WrongUse(f"{name}={limit}: it must be at least 1")
    return FilesToolset(
        Root(root), read_only=read_only, max_bytes=max_bytes, max_chars=max_chars, max_results=max_results, id=id
    )


class FilesToolset(AttachedToolset):
    """Tools for the files below a root, with a description of what each call will do."""

    def __init__(
        self, root: Root, *, read_only: bool, max_bytes: int, max_chars: int, max_results: int, id: str
    ) -> None:
        self.root = root
        self.read_only = read_only
        self.max_bytes = max_bytes
        self.max_chars = max_chars
        self.max_results = max_results
        self._judge = Judge(root)
        policy = builtin_policy("filesystem_ro" if read_only else "filesystem_rw", root.path)
        assert policy is not None
        self.policy = policy
        self._writing = threading.RLock()  # tools run in threads; concurrent edits of a file must not undo each other
        names = READS if read_only else (*READS, *WRITES)
        super().__init__([getattr(self, name) for name in names], id=id)

    def guard(self, directories: Iterable[str]) -> None:
        """Ask about every write into these directories (real paths), because a shell runs their programs by name."""
        self._judge.guarded = tuple(directories)

    # what the toolset declares about its calls

    def capability_labels(self, name: str, args: Mapping[str, Any], ctx: Any) -> tuple[str, ...]:
        """`fs.read` or `fs.write`; also `proc.exec` if the written file will be run."""
        if name in READS:
            return ("fs.read",)
        if name not in WRITES:
            return ()
        return ("fs.write", "proc.exec") if any(one.runs for one in self.judged(name, args)) else ("fs.write",)

    def needs_approval(self, name: str, args: Mapping[str, Any], ctx: Any) -> Verdict:
        """The verdict of the toolset's rules and of the files on disk.

        A call that the tool would refuse anyway is denied, so that nobody is asked in vain.
        """
        verdict = super().needs_approval(name, args, ctx)
        if verdict.effect is Effect.DENY or name not in (*READS, *WRITES):
            return verdict
        paths = self.judged(name, args)
        for one in paths:
            if one.refused:
                reason = f"{shown(one.path)} is refused: {one.refused}"
                return Verdict(effect=Effect.DENY, rules=(self.policy.name,), reason=reason)
        if verdict.effect is Effect.ALLOW and (secret := next((one.reason for one in paths if one.secret), "")):
            return Verdict(effect=Effect.ASK, rules=(self.policy.name,), reason=secret, exactly=True)
        if programs := next((one.reason for one in paths if one.guarded), ""):
            return Verdict(effect=Effect.ASK, rules=(self.policy.name,), reason=programs, exactly=True)
        return replace(verdict, reason=CHANGES) if verdict.yields and name in WRITES else verdict

    def describe_approval(self, name: str, args: Mapping[str, Any], ctx: Any) -> Mapping[str, Any]:
        """What the call will do: `summary`, `path`, `reason`; if a file changes, `diff` (or `preview`) and `basis`."""
        return describe(self.root, name, args, self.judged(name, args), self.max_bytes)

    def judged(self, name: str, args: Mapping[str, Any]) -> list[Judged]:
        """The paths of a call, judged."""
        keys = ("source", "target") if name == "move_file" else ("path",)
        follow = name not in ("move_file", "delete_file")
        return [self._judge.of(str(args.get(key, ".")), writes=name in WRITES, follow=follow) for key in keys]

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Call a tool. A read-only toolset refuses to write, however the call came about."""
        if self.read_only and name not in READS:
            raise ToolFailed(READ_ONLY)
        passing = let_through(ctx, name, tool_args)
        token = _shown.set(basis_of(passing.shown) if passing is not None else {})
        try:
            return await super().call_tool(name, tool_args, ctx, tool)
        finally:
            _shown.reset(token)

    # the tools

    def list_files(self, path: str = ".", recursive: bool = False, pattern: str = "") -> str:
        """List files and directories. Directories end in `/`.

        Args:
            path: The directory to list.
            recursive: Whether to list what is in its directories, too.
            pattern: A glob such as `*.py` for names, or `src/**/*.py` for paths below the directory.
        """
        with telling(path):
            inside = self._inside(path)
            self._same(path, inside, self.root.where(inside))
            looking = FileSearch(self.root, self.max_results)
            lines = listed_names(looking, inside, recursive=recursive, pattern=pattern)
        return self._answer(lines or ["[nothing found]"], looking)

    def read_file(self, path: str, start_line: int = 1, max_lines: int = 2000) -> str:
        """Read a text file, or some of its lines.

        Args:
            path: The file to read.
            start_line: The first line wanted; lines count from 1.
            max_lines: How many lines at most.
        """
        with telling(path):
            inside = self._inside(path)
            with self.root.reach(inside) as opened:
                self._same(path, inside, opened.where)
                data = self._read(path, opened)
        if is_binary(data):
            raise ToolFailed(f"{shown(path)} is not a text file; it has {counted(len(data), 'byte')}")
        return some_lines(data, max(start_line, 1), max(max_lines, 1), self.max_chars)

    def search_files(
        self, pattern: str, path: str = ".", glob: str = "", regex: bool = False, ignore_case: bool = False
    ) -> str:
        """Search text files line by line; answers `path:line number: line`.

        Args:
            pattern: The text to look for.
            path: The directory, or the one file, to search.
            glob: Which files, such as `*.py`; all where empty.
            regex: Whether the pattern is a regular expression; groups that look ahead or back are not supported.
            ignore_case: Whether upper and lower case are the same.
        """
        with telling(path):
            inside = self._inside(path)
            self._same(path, inside, self.root.where(inside))
            named = bool(self._judge.secret(inside))
            looking = FileSearch(self.root, self.max_results)
            lines = matching_lines(
                looking,
                self._files(looking, inside, glob),
                line_test(pattern, regex=regex, ignore_case=ignore_case),
                lambda where: not named and bool(self._judge.secret(where)),
                self.max_bytes,
            )
        return self._answer(lines or ["[nothing found]"], looking)

    def write_file(self, path: str, content: str) -> str:
        """Write a text file, replacing all it holds. Directories that are missing are made.

        Args:
            path: The file to write.
            content: All that the file will hold.
        """
        with telling(path), self._changing(path, parents=True) as spot:
            data = encoded(content)
            if len(data) > self.max_bytes:
                raise ToolFailed(f"the content has more than {self.max_bytes:,} bytes")
            spot.write(data)
        return f"wrote {counted(len(data), 'byte')} to {path}"

    def edit_file(self, path: str, old: str, new: str, replace_all: bool = False) -> str:
        """Replace a text in a file by another.

        Args:
            path: The file to edit.
            old: The text to replace, exactly as it is in the file; it must be there once.
            new: The text to put in its place.
            replace_all: Whether to replace it wherever it is, however often.
        """
        with telling(path), self._changing(path, edits=True) as spot:
            opened = spot.open()
            if opened is None:
                raise _missing()
            with opened:
                data = self._read(path, opened)
            changed = edited(data, old, new, replace_all=replace_all)
            self._check_shown(self._inside(path), spot.where, lambda: state_of_edit(data, changed))
            now = spot.stat()
            if now is None or (now.st_ino, now.st_mtime_ns) != (opened.stat.st_ino, opened.stat.st_mtime_ns):
                raise ToolFailed(f"{shown(path)} was changed by somebody else just now; read it again")
            spot.write(changed)
        return f"edited {path}"

    def move_file(self, source: str, target: str, overwrite: bool = False) -> str:
        """Move or rename a file or a directory.

        Args:
            source: What to move.
            target: Where to, the new name included. Directories that are missing are made.
            overwrite: Whether to replace a file that is there.
        """
        with telling(source), self._changing(source, follow=False) as old:
            if old.stat() is None:
                raise _missing()
            with telling(target), self._changing(target, follow=False, parents=True) as new:
                old.move(new, overwrite=overwrite)
        return f"moved {source} to {target}"

    def delete_file(self, path: str) -> str:
        """Delete a file, or a directory with nothing in it.

        Args:
            path: What to delete.
        """
        with telling(path), self._changing(path, follow=False) as spot:
            spot.remove()
        return f"deleted {path}"

    # how they do it

    def _inside(self, path: str) -> str:
        trouble, inside = self._judge.trouble(path)
        if trouble:
            raise ToolFailed(f"{shown(path)} is refused: {trouble}")
        return inside

    def _same(self, path: str, inside: str, where: str, *, writes: bool = False) -> None:
        """Raise if a path leads through symlinks to something that its name does not say."""
        if trouble := self._judge.trouble_at(inside, where, writes=writes):
            raise ToolFailed(f"{shown(path)} is refused: {trouble}")

    @contextmanager
    def _changing(
        self, path: str, *, follow: bool = True, parents: bool = False, edits: bool = False
    ) -> Generator[Spot]:
        """Yield the file to change, under the lock for writes. Whoever `edits` it checks what was shown of it."""
        if self.read_only:
            raise ToolFailed(READ_ONLY)
        inside = self._inside(path)
        inside = inside if follow else inside.rstrip("/")
        self._same(path, inside, self.root.where(inside, follow=follow), writes=True)
        with self._writing, self.root.spot(inside, follow=follow, parents=parents) as spot:
            self._same(path, inside, spot.where, writes=True)
            if not edits:
                self._check_shown(inside, spot.where, lambda: state_of(spot, self.max_bytes))
            yield spot

    def _check_shown(self, inside: str, where: str, state: Callable[[], str]) -> None:
        """Raise `PreviewChanged` if a person approved the call for another file, or for another state of it."""
        then = _shown.get().get(named(inside))
        if then is not None and not is_as_shown(then, where, state):
            raise PreviewChanged(named(inside))

    def _read(self, path: str, opened: Opened) -> bytes:
        if opened.stat.st_size > self.max_bytes:
            size = f"{opened.stat.st_size:,} bytes, more than {self.max_bytes:,}"
            raise ToolFailed(f"{shown(path)} is too large: {size}; search_files leaves such files out, too")
        return opened.read(self.max_bytes)

    def _files(self, looking: FileSearch, inside: str, glob: str) -> Iterator[str]:
        fits = name_filter(glob)
        with self.root.reach(inside, directory=None) as opened:
            single = stat.S_ISREG(opened.stat.st_mode)
        if single:
            yield inside
            return
        start = "" if inside in (".", "./") else f"{inside.rstrip('/')}/"
        for path, entry in looking.walk(inside, recursive=True):
            if entry.kind == "file" and fits(path.removeprefix(start), entry.name):
                yield path

    def _answer(self, lines: list[str], looking: FileSearch) -> str:
        return self._cut("\n".join([*lines, *looking.notes()]))

    def _cut(self, text: str) -> str:
        if len(text) <= self.max_chars:
            return text
        return f"{text[: self.max_chars]}\n[cut after {self.max_chars:,} characters]"


def _missing() -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
