"""Store URLs: the file they name, and the form that may be shown."""

from __future__ import annotations

import os
import re

from signoff.core.credential import without_password
from signoff.errors import WrongUse


def sqlite_path(url: str, root: str | os.PathLike[str] = ".") -> str:
    """The path that an `sqlite:` URL names. Several leading slashes count as one, because people write `sqlite:///`."""
    if not names_file(url):
        raise WrongUse("this sqlite: address names no file; write it as sqlite:.signoff/signoff.db")
    return os.path.join(os.fspath(root), os.path.expanduser(_path(url)))


def names_file(url: str) -> bool:
    """Whether an `sqlite:` URL names a file, as far as its text tells."""
    path = _path(url)
    return bool(path.strip()) and not path.endswith("/") and not path.startswith(":")


def _path(url: str) -> str:
    return re.sub(r"^/{2,}", "/", url.partition(":")[2])


def is_file(url: str) -> bool:
    """Whether a URL names an SQLite file."""
    return url.partition(":")[0].lower() == "sqlite"


def masked(url: str) -> str:
    """A URL without its password, safe to show anywhere."""
    return re.sub(r"(?i)\b((?:ssl)?password)\s*=\s*(?:'(?:[^'\\]|\\.)*'?|[^&\s]*)", r"\1=…", without_password(url))
