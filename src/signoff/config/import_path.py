"""Where Python finds a project's own code, and for how long."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def importable(directory: str) -> Generator[None]:
    """While this lasts, modules are found in a project's directory, after everything that is installed.

    To be left as soon as the project's own code is imported. Agents may write into the directory, and many packages try
    to import another one that need not be there: from then on a file of that name would be run, unasked.
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
