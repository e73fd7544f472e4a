"""A one-line summary of a call, for lists and titles."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

LONGEST = 120
_PLACES = ("file_path", "notebook_path", "absolute_path", "path", "url")
"""The arguments that say most about what a call is about."""
VERBS = {
    "list_files": "List",
    "read_file": "Read",
    "search_files": "Search",
    "write_file": "Write",
    "edit_file": "Edit",
    "delete_file": "Delete",
}
"""What titles say for the names of file tools."""
_HERE = frozenset({"list_files", "search_files"})
"""Tools that look here if no place is given."""
_text = json.JSONEncoder(ensure_ascii=False, default=str).encode


def summary_of(tool: str, args: Mapping[str, Any], metadata: Mapping[str, Any]) -> str:
    """Summarize a call in one line: what the tool says (`summary`, else `reason` and `path`), or the call itself."""
    said = metadata.get("summary")
    if isinstance(said, str) and said.strip():
        return _line(said)
    reason, path = metadata.get("reason"), metadata.get("path")
    if isinstance(reason, str) and reason.strip():
        return _line(f"{tool}: {reason}" + (f" ({path})" if isinstance(path, str) and path else ""))
    if isinstance(path, str) and path:
        return _line(f"{tool} {path}")
    inside = ", ".join([f"{name}={_text(value)}" for name, value in args.items()])
    return _line(f"{tool}({inside})")


def call_words(tool: str, labels: frozenset[str], args: Mapping[str, Any]) -> str:
    """Name a call of which nothing is known but its labels and arguments, in the words of the titles."""
    return _line(own_words(tool, labels, args)) or summary_of(tool, args, {})


def own_words(tool: str, labels: frozenset[str], args: Mapping[str, Any]) -> str:
    """Return what a call does by its labels and arguments alone; empty if they do not say it."""
    command = args.get("command")
    if labels and isinstance(command, str) and command.strip():
        return f"Run: {command}"
    source, target = args.get("source"), args.get("target")
    if tool == "move_file" and labels and isinstance(source, str) and isinstance(target, str):
        return f"Move {source} to {target}{', replacing what is there' if args.get('overwrite') else ''}"
    place = next((value for name in _PLACES if isinstance(value := args.get(name), str) and value.strip()), "")
    place = place or ("." if tool in _HERE else "")
    pattern = args.get("pattern")
    told = f" for {pattern}" if isinstance(pattern, str) and pattern.strip() else ""
    return f"{VERBS.get(tool, tool)} {place}{told}" if labels and place else ""


def _line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
