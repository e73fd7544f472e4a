"""The files that a patch in Codex's own format touches."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

_FILE = re.compile(r"^\s*\*\*\* (?:Add File|Update File|Delete File|Move to): *(.+?) *$", re.MULTILINE)
BEGIN = "*** Begin Patch"


def patch_in(args: Mapping[str, Any]) -> str:
    """The patches among the arguments of `apply_patch`: under any name, or as the second word of a command."""
    found: list[str] = []
    for value in args.values():
        texts = [value] if isinstance(value, str) else cast("list[Any]", value) if isinstance(value, list) else []
        found += [text for text in texts if isinstance(text, str) and BEGIN in text]
    return "\n".join(found)


def paths_in(patch: str) -> list[str]:
    """Every file that is added, changed, removed, or moved to, in order, once."""
    return list(dict.fromkeys(one.strip() for one in _FILE.findall(patch.replace("\r\n", "\n"))))


def patch_paths(args: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a rule with `path` looks at. A patch in which no file can be found has none, and is asked about."""
    return {"paths": paths_in(patch_in(args))}
