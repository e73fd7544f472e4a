"""Convert llm-do's file access to the rules of a toolset: one root, or directories (`sandbox`) with permissions."""

from __future__ import annotations

import os
import re
from typing import Any

from signoff.config.llm_do.notes import Note, NoteKind
from signoff.policy.builtin import READ_TOOLS, WRITE_TOOLS
from signoff.policy.phrases import shown
from signoff.policy.placed_value import ConfigValue

READ_WRITE, READ_ONLY = "filesystem_rw", "filesystem_ro"
BUILT_IN = {
    "filesystem": READ_WRITE,
    "filesystem_rw": READ_WRITE,
    "filesystem_project": READ_WRITE,
    "filesystem_cwd": READ_WRITE,
    "filesystem_ro": READ_ONLY,
    "filesystem_read_only": READ_ONLY,
    "filesystem_project_ro": READ_ONLY,
    "filesystem_cwd_ro": READ_ONLY,
}
"""llm-do's file toolsets, and signoff's names for them."""

_READS, _WRITES = list(READ_TOOLS), list(WRITE_TOOLS)
_SUFFIX = re.compile(r"(?:\.[A-Za-z0-9_-]+)+")
_SUFFIX_KEYS = ("suffixes", "allowed_suffixes", "text_suffixes", "attachment_suffixes")


def filesystem_entry(use: str, config: dict[str, ConfigValue]) -> tuple[dict[str, Any], list[Note]]:
    """A toolset with this configuration; empty if signoff's built-in one does the same."""
    entry: dict[str, Any] = {}
    rules: list[dict[str, Any]] = []
    notes: list[Note] = []
    for key, spot in config.items():
        match key:
            case "base_path":
                entry["config"] = {"root": spot.text("a directory")}
                notes.append(Note(NoteKind.CARRIED, spot.key_place, "`base_path` is `config: {root: …}`"))
            case "read_approval" if spot.flag():
                rules.append({"ask": {"tool": _READS}})
                notes.append(Note(NoteKind.CARRIED, spot.key_place, "reading is asked about"))
            case "write_approval" if not spot.flag():
                rules.append({"allow": {"tool": "write_file", "path": {"inside": "."}}})
                notes.append(
                    Note(NoteKind.CARRIED, spot.key_place, "`write_file` runs without a question below the root")
                )
            case "read_only" if spot.flag():
                use = READ_ONLY
            case "read_approval" | "write_approval" | "read_only":
                pass  # the default of signoff's built-in one
            case _:
                what = f"{shown(key)} has no equivalent here"
                notes.append(
                    Note(NoteKind.LEFT, spot.key_place, what, "see docs/guides/toolsets.md for what can be set")
                )
    if rules:
        entry["policy"] = rules
    return ({"use": use, **entry} if entry or use == READ_ONLY else {}), notes


def sandbox_entry(paths: dict[str, ConfigValue]) -> tuple[dict[str, Any], list[Note]]:
    """A toolset for the project directory with access only to the named directories, each with its permissions."""
    notes: list[Note] = []
    inside: list[str] = []
    narrow: list[dict[str, Any]] = []
    wide: list[dict[str, Any]] = []
    sizes: list[int] = []
    for name, spot in paths.items():
        keys = spot.entries(what="a mapping with `root` and `mode`")
        where = keys.get("root") or keys.get("path")
        root = os.path.normpath(where.text("a directory")) if where is not None else name
        if os.path.isabs(root) or root.startswith(("..", "~")):
            what = f"the directory {shown(name)} is outside of the project ({shown(root)})"
            fix = f"give it a toolset of its own in signoff.yaml: {{use: {READ_ONLY}, config: {{root: …}}}}"
            notes.append(Note(NoteKind.LEFT, spot.key_place, what, fix))
            continue
        inside.append(root)
        if root != name:
            what = f"paths were written `{name}/…`; here they are `{root}/…`"
            notes.append(Note(NoteKind.CHANGED, spot.key_place, what, "say so in the instructions"))
        _rights(root, keys, narrow, wide, sizes, notes)
        notes.append(
            Note(
                NoteKind.CARRIED, spot.key_place, f"only {shown(root)} and the other named directories can be accessed"
            )
        )
    if not inside:
        return {}, notes
    closed = {"deny": {"tool": _READS + _WRITES, "path": {"outside": inside}}, "reason": "outside of the sandbox"}
    whole = {"ask": {"tool": ["list_files", "search_files"], "args": {"path": {"exists": False}}}}
    config: dict[str, Any] = {"root": "."}
    if sizes:
        config["max_bytes"] = min(sizes)
    return {"use": READ_WRITE, "config": config, "policy": [closed, *narrow, whole, *wide]}, notes


def _rights(
    root: str,
    keys: dict[str, ConfigValue],
    narrow: list[dict[str, Any]],
    wide: list[dict[str, Any]],
    sizes: list[int],
    notes: list[Note],
) -> None:
    """Add the rules about one directory: to `narrow` those that deny and ask, to `wide` those that come after them."""
    mode = keys["mode"].value if "mode" in keys else "ro"
    kinds = [item.value for key in _SUFFIX_KEYS if key in keys for item in keys[key].one_or_more("a list of suffixes")]
    files: dict[str, Any] = {"inside": root}
    plain = [kind for kind in kinds if isinstance(kind, str) and _SUFFIX.fullmatch(kind)]
    if kinds:
        files["matches"] = [f"**/*{kind}" for kind in plain]
        place = next(keys[key] for key in _SUFFIX_KEYS if key in keys).key_place
        what = (
            f"llm-do refuses other files than {', '.join(map(str, kinds))} in {shown(root)}; here they are asked about"
        )
        notes.append(Note(NoteKind.CHANGED, place, what))
    if mode != "rw":
        reason = f"{root} is only read"
        narrow.append({"deny": {"tool": _WRITES, "path": {"inside": root}}, "reason": reason})
    elif "write_approval" in keys and not keys["write_approval"].flag() and plain == kinds:
        wide.append({"allow": {"tool": "write_file", "path": files}})
    if "read_approval" in keys and keys["read_approval"].flag():
        narrow.append({"ask": {"tool": ["read_file", "search_files"], "path": {"inside": root}}})
    elif kinds:
        if plain:
            wide.append({"allow": {"tool": "read_file", "path": files}})
        wide.append({"ask": {"tool": ["read_file", "search_files"], "path": {"inside": root}}})
    if "max_file_bytes" in keys:
        sizes.append(keys["max_file_bytes"].count())
    known = {"root", "path", "mode", "write_approval", "read_approval", "max_file_bytes", *_SUFFIX_KEYS}
    for key, spot in keys.items():
        if key not in known:
            notes.append(
                Note(NoteKind.LEFT, spot.key_place, f"{shown(key)} has no equivalent here", "check what it was for")
            )
