"""Import a project's own code without leaving its directory on `sys.path`.

Agents may write into that directory. Many packages try to import an optional one; from then on a file of that name
would run, unasked, or take the place of an installed module.
"""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, all_suffixes
from itertools import islice
from types import ModuleType

_SUFFIXES = tuple(all_suffixes())
_MOST_ENTRIES = 10_000
_lock = threading.RLock()
_users: Counter[str] = Counter()
"""How many imports in progress need a directory. Several threads may import at the same time."""


@contextmanager
def importable(directory: str) -> Generator[None]:
    """Meanwhile, find modules in a project's directory, after all installed ones.

    Leave it as soon as the project's own code is imported.
    """
    with _lock:
        if ours := not _is_given(directory):
            _users[directory] += 1
            if _users[directory] == 1:
                sys.path.append(directory)
    try:
        yield
    finally:
        with _lock:
            if ours:
                _users[directory] -= 1
                if not _users[directory] and directory in sys.path:
                    sys.path.remove(directory)


def keep_importable(directory: str) -> None:
    """Let functions of a project import its other modules later: those that are in its directory now, and no others."""
    with _lock:
        known = (finder.directory for finder in sys.meta_path if isinstance(finder, _ModulesOfProject))
        if not _is_given(directory) and directory not in known:
            sys.meta_path.append(_ModulesOfProject(directory))


def _is_given(directory: str) -> bool:
    """Whether whoever started Python wants the directory on the path."""
    return directory in sys.path and not _users[directory]


class _ModulesOfProject(MetaPathFinder):
    def __init__(self, directory: str) -> None:
        self.directory = directory
        self._names = frozenset(_modules_in(directory))

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        if path is not None or fullname not in self._names:  # modules of a package are found by its own path
            return None
        return PathFinder.find_spec(fullname, [self.directory], target)


def _modules_in(directory: str) -> Generator[str]:
    for name, path in _entries(directory):
        if name.endswith(_SUFFIXES):
            yield name.partition(".")[0]
        elif name.isidentifier() and any(inside.endswith(_SUFFIXES) for inside, _ in _entries(path)):
            yield name


def _entries(directory: str) -> list[tuple[str, str]]:
    """Names and paths in a directory; none if it cannot be read, or is a file."""
    try:
        with os.scandir(directory) as entries:
            return [(entry.name, entry.path) for entry in islice(entries, _MOST_ENTRIES)]
    except OSError:
        return []
