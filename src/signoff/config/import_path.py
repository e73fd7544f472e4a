"""Make a project's own code importable, for a limited time."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def importable(directory: str) -> Generator[None]:
    """Add a project's directory to the end of the import path, after everything that is installed.

    Exit as soon as the project's own code is imported. Agents may write into the directory, and many packages try to
    import another one that need not be installed: a file of that name would then be run without being asked about.
    """
    if directory in sys.path:  # it is there already, so it is not removed afterwards
        yield
        return
    sys.path.append(directory)
    try:
        yield
    finally:
        if directory in sys.path:
            sys.path.remove(directory)
