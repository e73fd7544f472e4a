"""Where a saved run was started, where that is now, as its project may have moved, and whether it can go on here."""

from __future__ import annotations

import os
from dataclasses import replace

from signoff.config import Settings
from signoff.config.files import find_project
from signoff.core.run import RunSetup, SavedRun
from signoff.store.place import id_of


def root_of(settings: Settings) -> str:
    """Return the directory of a project's file; empty if it has none."""
    return os.path.dirname(os.path.realpath(settings.file)) if settings.file else ""


def in_project(setup: RunSetup, settings: Settings) -> RunSetup:
    """Add the project's directory and ID to the setup, to find it again after a move."""
    root = root_of(settings)
    return replace(setup, project=root, project_id=id_of(root)) if root else setup


def setup_now(setup: RunSetup) -> RunSetup:
    """Return how a run was started, with its paths as they are now.

    They change if the current project is the one the run was started in, and has moved since.
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


def began_in(setup: RunSetup, root: str) -> bool:
    """Return whether a run was started in the project with this directory, or in this directory without a project."""
    setup = setup_now(setup)
    if not setup.project:
        return bool(setup.directory) and _is_same(setup.directory, root)
    if setup.project == root:
        return True
    # The project may have moved: then its id is here, and no longer at the recorded path.
    own = setup.project_id
    return bool(own) and own == id_of(root) and id_of(setup.project) != own


def _is_same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def _moved(path: str, root: str, here: str) -> str:
    if not path:
        return path
    inside = os.path.relpath(os.path.realpath(path), root)
    return path if inside == os.pardir or inside.startswith(f"{os.pardir}{os.sep}") else os.path.join(here, inside)


def cannot(run: SavedRun) -> str:
    """Return why a run that no process executes cannot be resumed here, as text for people; empty if it can."""
    if not run.agent:
        gone = ", but the program that asked is gone" if run.holder else ""
        return f'Answered{gone}. It continues when a program resumes run {run.id}: `resume(agent, "{run.id}")`'
    if not _is_here(setup_now(run.setup).directory):
        return elsewhere(run)
    return ""


def elsewhere(run: SavedRun) -> str:
    """Return the text for people about a worker's run that this process cannot resume."""
    return f"Answered. To resume: signoff resume {run.id}"


def _is_here(directory: str) -> bool:
    try:
        return os.path.samefile(directory, os.getcwd())
    except OSError:
        return False
