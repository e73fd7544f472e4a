"""Where a kept run began, and where that is now: its project may have moved since."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from signoff.config import Settings
from signoff.config.files import find_project
from signoff.store.place import id_of

PATHS = ("folder", "policy", "file")
"""What is kept with a run and names a place in its project."""


def project_of(settings: Settings) -> dict[str, str]:
    """What is kept with a run so that its project is known again."""
    if not settings.file:
        return {}
    root = os.path.dirname(os.path.realpath(settings.file))
    return {"project": root, "project_id": id_of(root)}


def began(kept: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a run was started with, with the places as they are now.

    They are others where the project that the command is typed in is the one the run began in, and has moved since.
    """
    root, own = kept.get("project"), kept.get("project_id")
    if not root or not own or id_of(root) == own:
        return kept
    file = find_project()
    here = os.path.dirname(os.path.realpath(file)) if file is not None else ""
    if not here or id_of(here) != own:
        return kept
    return {**kept, **{name: _moved(kept[name], root, here) for name in PATHS if kept.get(name)}}


def _moved(path: str, root: str, here: str) -> str:
    inside = os.path.relpath(os.path.realpath(path), root)
    return path if inside == os.pardir or inside.startswith(f"{os.pardir}{os.sep}") else os.path.join(here, inside)
