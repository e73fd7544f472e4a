"""Find the files that a patch in Codex's own format changes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

_FILE = re.compile(r"^\s*\*\*\* (?:Add File|Update File|Delete File|Move to): *(.+?) *$", re.MULTILINE)
BEGIN = "*** Begin Patch"


def patch_in(args: Mapping[str, Any]) -> str:
    """Return the patches in the arguments of `apply_patch`: under any name, or as an item of a list."""
    found: list[str] = []
    for value in args.values():
        texts = [value] if isinstance(value, str) else cast("list[Any]", value) if isinstance(value, list) else []
        found += [text for text in texts if isinstance(text, str) and BEGIN in text]
    return "\n".join(found)


def paths_in(patch: str) -> list[str]:
    """Return every file that is added, changed, removed, or moved to, in order, once."""
    return list(dict.fromkeys(one.strip() for one in _FILE.findall(patch.replace("\r\n", "\n"))))


def patch_paths(args: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the paths that a rule with `path` checks. A patch without any file has none, and is asked about."""
    return {"paths": paths_in(patch_in(args))}
