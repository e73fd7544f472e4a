"""Find the paths of tools that list or search files. Without a path argument they search the working directory."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

SEARCHES = frozenset({"Glob", "Grep", "LS", "glob", "search_file_content", "grep_search", "list_directory"})
_NAMED = ("path", "dir_path")


def search_paths(directory: str, tool: str) -> Callable[[Mapping[str, Any]], Mapping[str, Any]]:
    """Return a function that derives the paths a rule with `path` checks: the start, and where a pattern leads."""

    patterned = (
        ("pattern",) if tool.lower() == "glob" else ("glob", "include", "include_pattern")
    )  # for other tools, a pattern matches text

    def read(args: Mapping[str, Any]) -> Mapping[str, Any]:
        found: dict[str, Any] = {} if any(args.get(name) for name in _NAMED) else {"path": directory}
        patterns = [value for name in patterned if isinstance(value := args.get(name), str)]
        beyond = [start for one in patterns if (start := _beginning(one))]
        return {**found, "pattern_paths": beyond} if beyond else found

    return read


def _beginning(pattern: str) -> str:
    """Return the literal beginning of a pattern that leads out of the start directory (`..`, `/`, `~`); else empty."""
    bare = pattern.strip().lstrip("{[")
    if bare.startswith(("/", "~")):
        plain = bare
        for sign in "*?[{,]}":
            plain = plain.partition(sign)[0]
        return os.path.dirname(plain) or plain
    return ".." if ".." in bare else ""
