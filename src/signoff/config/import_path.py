"""Where Python finds a project's own code, and for how long."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def importable(folder: str) -> Generator[None]:
    """While this lasts, modules are found in a project's folder, after everything that is installed.

    To be left as soon as the project's own code is imported. Agents may write into the folder, and many packages try
    to import another one that need not be there: from then on a file of that name would be run, unasked.
    """
    if folder in sys.path:  # whoever started Python wants it there
        yield
        return
    sys.path.append(folder)
    try:
        yield
    finally:
        if folder in sys.path:
            sys.path.remove(folder)
