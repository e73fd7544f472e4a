"""Where a project's state is kept, when nobody says where."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path


def state_folder(project: str | os.PathLike[str]) -> Path | None:
    """Where a project's state is kept: outside of it, where its agents have no business. None: nowhere."""
    state = os.environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):  # as the standard says: a relative one is to be ignored
        state = os.path.join(os.path.expanduser("~"), ".local", "state")
    if not os.path.isabs(state) or state.startswith("/.local"):
        return None
    name = sha256(os.path.realpath(project).encode("utf-8", "surrogateescape")).hexdigest()[:16]
    return Path(state) / "signoff" / name
