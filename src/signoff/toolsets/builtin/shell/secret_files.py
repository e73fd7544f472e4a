"""Find secrets below directories that a command reads recursively: files whose hidden names suggest credentials."""

from __future__ import annotations

import os

from signoff.disk_steps import DiskSteps
from signoff.found_files import files_below
from signoff.policy.secret import holds_secrets, secret_place
from signoff.policy.shell.filters import keeps_out
from signoff.policy.shell.simple_command import ReadOnlyCommand
from signoff.toolsets.builtin.shell.argv import Expander
from signoff.toolsets.builtin.shell.environment import home_directory

_SECRET = 6
"""The steps that it takes to compare a file with the known secret places."""


def leads_to(path: str, root: str) -> str:
    """Where a path leads after symlinks are resolved, as the list of secret places has it: below `~`, or absolute."""
    home = home_directory()
    written = home + path[1:] if path == "~" or path.startswith("~/") else path
    real, home = os.path.realpath(os.path.join(root, written)), os.path.realpath(home)
    inside = real == home or real.startswith(f"{home.rstrip('/')}/")
    return f"~{real[len(home) :]}" if inside and home != "/" else real  # the list of secrets uses `~`


def secret_below(reading: ReadOnlyCommand, root: str, count: DiskSteps) -> str:
    """Why a command must not read everything below its directories without approval; empty if it may.

    Raises `Unclear` if the count ends.
    """
    expander = Expander(root, root, count=count)
    directories = [directory for word in reading.deep for directory in expander.word(word)]
    if reading.pair and not all(os.path.exists(os.path.join(root, directory)) for directory in directories):
        return ""
    name = reading.program.name
    for directory in directories:
        here = os.path.join(root, directory).removeprefix(f"{root.rstrip('/')}/")
        for path, link in files_below(os.path.join(root, directory), published=False, count=count):
            count.take(_SECRET + len(reading.filters))
            if keeps_out(reading.filters, path) and not (link and os.path.isdir(link)):
                continue  # filters for files do not apply to symlinks to directories
            why = _linked(link) if link else _hidden(path) or _hidden(os.path.join(here, path))
            if why:
                return f"`{name}` reads everything below `{directory}`, and `{os.path.join(directory, path)}` {why}"
    return ""


def _hidden(path: str) -> str:
    """Why a path is secret because of a hidden name."""
    return _by_more_than_name(path) if path.startswith(".") or "/." in path else ""


def _linked(path: str) -> str:
    """Why a symlink leads to a secret place; some programs follow symlinks."""
    leads = leads_to(path, "/")
    why = _by_more_than_name(leads) or (holds_secrets(leads) if os.path.isdir(path) else "")
    return f"leads to {leads}, which {why}" if why else ""


def _by_more_than_name(path: str) -> str:
    """The reason, unless it is only a plain name such as cacert.pem, which tests and packages often contain."""
    why = secret_place(path)
    directory, _, name = path.rpartition("/")
    return why if why and (name.startswith(".") or not secret_place(name) or secret_place(f"{directory}/x")) else ""
