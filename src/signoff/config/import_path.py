"""Import a project's own code without leaving its directory on `sys.path`.

Agents may write into that directory. Many packages try to import an optional one; from then on a file of that name
would run, unasked, or take the place of an installed module.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, all_suffixes
from types import ModuleType


@contextmanager
def importable(directory: str) -> Generator[None]:
    """Meanwhile, find modules in a project's directory, after all installed ones.

    Leave it as soon as the project's own code is imported.
    """
    if directory in sys.path:  # whoever started Python wants it there
        yield
        return
    sys.path.append(directory)
    try:
        yield
    finally:
        if directory in sys.path:
            sys.path.remove(directory)


def keep_importable(directory: str) -> None:
    """Let functions of a project import its other modules later: those that are in its directory now, and no others."""
    if directory in sys.path or any(
        isinstance(finder, _ModulesOfProject) and finder.directory == directory for finder in sys.meta_path
    ):
        return
    sys.meta_path.append(_ModulesOfProject(directory))


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
    suffixes = tuple(all_suffixes())
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.endswith(suffixes):
                yield entry.name.partition(".")[0]
            elif entry.name.isidentifier() and entry.is_dir() and any(_has_module(entry.path, suffixes)):
                yield entry.name


def _has_module(directory: str, suffixes: tuple[str, ...]) -> Generator[bool]:
    try:
        with os.scandir(directory) as entries:
            yield from (entry.name.endswith(suffixes) for entry in entries)
    except OSError:
        return
