"""What would let a worker change the files and programs that restrict it. Only signoff's own tools are tried."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from signoff.core.verdict import Effect, Verdict
from signoff.policy.builtin import WRITE_TOOLS
from signoff.policy.commands import CommandCondition
from signoff.policy.match import Match
from signoff.policy.rule import Rule
from signoff.toolsets.builtin.files.file_toolset import FilesToolset
from signoff.toolsets.builtin.shell.shell_toolset import ShellToolset
from signoff.workers.listing import ListedTool


async def way_to_change(tool: ListedTool, path: str) -> Verdict | None:
    """Return the verdict that lets a worker change a file unasked with this tool, as things are; None if none does."""
    for args in _tries(tool, path):
        if tool.judge is not None and (verdict := await tool.judge.verdict(args)).effect is Effect.ALLOW:
            return verdict
    return None


def beyond_reading(tool: ListedTool) -> list[Rule]:
    """Return the rules that let calls of a tool run unasked, except those about read-only commands."""
    return [rule for rule in tool.lets if not all(_only_reads(match) for match in rule.matches)]


def _only_reads(match: Match) -> bool:
    return any(isinstance(one, CommandCondition) and one.read_only and not one.patterns for one in match.conditions)


def unsealed(tool: ListedTool) -> tuple[str, ...]:
    """Return the program directories that a shell without a sandbox can write in; otherwise empty."""
    home, _ = tool.home
    return home.guarded if isinstance(home, ShellToolset) and home.sandbox is None else ()


def _tries(tool: ListedTool, path: str) -> Iterator[Mapping[str, Any]]:
    """Yield arguments with which the tool would change a file."""
    home, name = tool.home
    if isinstance(home, FilesToolset):
        if (inside := _inside(home.root.path, path)) and name in WRITE_TOOLS:
            # Each tool takes some of these, and ignores the others.
            yield {"path": inside, "content": "", "old": "", "new": "", "source": f"{inside}.new", "target": inside}
    elif isinstance(home, ShellToolset):
        name = shlex.quote(_inside(home.root, path) or os.path.realpath(path))
        yield from ({"command": f"{words} {name}"} for words in ("rm", "tee", "cp new", "mv new", "truncate -s 0"))


def _inside(root: str | os.PathLike[str], path: str) -> str:
    """Return the path relative to the root; empty if it is not below."""
    relative = os.path.relpath(os.path.realpath(path), os.path.realpath(root))
    return "" if relative == os.pardir or relative.startswith(os.pardir + os.sep) else relative
