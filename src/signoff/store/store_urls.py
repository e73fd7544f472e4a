"""The addresses of stores: as files, and as they may be shown."""

from __future__ import annotations

import os
import re

from signoff.errors import WrongUse


def sqlite_path(url: str, root: str | os.PathLike[str] = ".") -> str:
    """The file an `sqlite:` URL names. Two or more slashes before a path are one, as people write them."""
    path = re.sub(r"^/{2,}", "/", url.partition(":")[2])
    if not path.strip() or path.endswith("/") or path.startswith(":"):
        raise WrongUse("this sqlite: address names no file; write it as sqlite:.signoff/signoff.db")
    return os.path.join(os.fspath(root), os.path.expanduser(path))


def is_file(url: str) -> bool:
    """Whether a URL names a file."""
    return url.partition(":")[0].lower() == "sqlite"


def masked(url: str) -> str:
    """A URL as it may be shown, anywhere: without the password."""
    url = re.sub(r"(?<=://)([^/?#@:]*):.*@", r"\1:…@", url, flags=re.DOTALL)
    return re.sub(r"(?i)\b((?:ssl)?password)\s*=\s*(?:'(?:[^'\\]|\\.)*'?|[^&\s]*)", r"\1=…", url)
