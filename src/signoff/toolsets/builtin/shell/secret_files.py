"""What lies below directories that a command reads as a whole: files whose hidden names say that they hold secrets."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator

from signoff.policy.secret import holds_secrets, secret_place
from signoff.policy.shell.filters import keeps_out
from signoff.policy.shell.simple_command import ReadOnlyCommand
from signoff.toolsets.builtin.shell.argv import Expander
from signoff.toolsets.builtin.shell.environment import home_directory

_MOST = 20_000
"""Entries that are looked at; beyond them, nobody looks."""
_LEFT_OUT = frozenset({".git", "node_modules", "site-packages"})  # what others published is not somebody's secret


def leads_to(path: str, root: str) -> str:
    """Where a path leads once links are followed, as the list of secret places has it: below `~`, or absolute."""
    home = home_directory()
    written = home + path[1:] if path == "~" or path.startswith("~/") else path
    real, home = os.path.realpath(os.path.join(root, written)), os.path.realpath(home)
    inside = real == home or real.startswith(f"{home.rstrip('/')}/")
    return f"~{real[len(home) :]}" if inside and home != "/" else real  # wherever a home is, its secrets are known


def secret_below(reading: ReadOnlyCommand, root: str) -> str:
    """Why everything below the directories that a command reads is not for reading unasked; empty where it may be."""
    expander = Expander(root, root)
    directories = [directory for word in reading.deep for directory in expander.word(word)]
    if reading.pair and not all(os.path.exists(os.path.join(root, directory)) for directory in directories):
        return ""
    name = reading.program.name
    budget = iter(range(_MOST))
    for directory in directories:
        here = os.path.join(root, directory).removeprefix(f"{root.rstrip('/')}/")
        for path, link in _files(os.path.join(root, directory), budget):
            if keeps_out(reading.filters, path) and not (link and os.path.isdir(link)):
                continue  # filters for files leave links to directories alone
            why = _linked(link) if link else _hidden(path) or _hidden(os.path.join(here, path))
            if why:
                return f"`{name}` reads everything below `{directory}`, and `{os.path.join(directory, path)}` {why}"
    return ""


def _files(top: str, budget: Iterator[int]) -> Iterator[tuple[str, str]]:
    """Each file below a directory, seen from there; for a link, also the whole path. Each linked directory once."""
    waiting = deque([""])
    seen = {os.path.realpath(top)}
    while waiting:
        directory = waiting.popleft()  # what is near first, as nobody looks at all of a large tree
        try:
            with os.scandir(os.path.join(top, directory)) as entries:
                for entry in entries:
                    if next(budget, None) is None:
                        return
                    path = os.path.join(directory, entry.name)
                    if entry.is_dir(follow_symlinks=False):
                        waiting.extend([path] if entry.name not in _LEFT_OUT else [])
                        continue
                    yield path, entry.path if entry.is_symlink() else ""
                    if entry.is_symlink() and entry.is_dir() and (real := os.path.realpath(entry.path)) not in seen:
                        seen.add(real)  # some programs follow links
                        waiting.append(path)
        except OSError:
            continue  # what cannot be read by us, the command cannot read either


def _hidden(path: str) -> str:
    """The reason for a path that is secret by a hidden name."""
    return _by_more_than_name(path) if path.startswith(".") or "/." in path else ""


def _linked(path: str) -> str:
    """The reason for a link that leads to a secret place; some programs follow links."""
    leads = leads_to(path, "/")
    why = _by_more_than_name(leads) or (holds_secrets(leads) if os.path.isdir(path) else "")
    return f"leads to {leads}, which {why}" if why else ""


def _by_more_than_name(path: str) -> str:
    """The reason, unless it is a plain name such as cacert.pem: tests and packages are full of them."""
    why = secret_place(path)
    directory, _, name = path.rpartition("/")
    return why if why and (name.startswith(".") or not secret_place(name) or secret_place(f"{directory}/x")) else ""
