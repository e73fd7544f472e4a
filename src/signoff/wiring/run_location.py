"""Where a saved run began, and where that is now: its project may have moved since."""

from __future__ import annotations

import os
from dataclasses import replace

from signoff.config import Settings
from signoff.config.files import find_project
from signoff.core.run import RunSetup
from signoff.store.place import id_of


def in_project(setup: RunSetup, settings: Settings) -> RunSetup:
    """With what a project is known again by."""
    if not settings.file:
        return setup
    root = os.path.dirname(os.path.realpath(settings.file))
    return replace(setup, project=root, project_id=id_of(root))


def setup_now(setup: RunSetup) -> RunSetup:
    """How a run was started, with the paths as they are now.

    They are others where the project that the command is typed in is the one the run began in, and has moved since.
    """
    root, own = setup.project, setup.project_id
    if not root or not own or id_of(root) == own:
        return setup
    file = find_project()
    here = os.path.dirname(os.path.realpath(file)) if file is not None else ""
    if not here or id_of(here) != own:
        return setup
    return replace(
        setup,
        directory=_moved(setup.directory, root, here),
        policy=_moved(setup.policy, root, here),
        worker_file=_moved(setup.worker_file, root, here),
    )


def _moved(path: str, root: str, here: str) -> str:
    if not path:
        return path
    inside = os.path.relpath(os.path.realpath(path), root)
    return path if inside == os.pardir or inside.startswith(f"{os.pardir}{os.sep}") else os.path.join(here, inside)
