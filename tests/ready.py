"""Store files that are ready to be used, as the first process to use one leaves it.

They are copied: to make one takes ten times as long. That one is made as it should be is seen in `tests/store`.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from signoff.store.sqlite import SqliteStore


@cache
def _content() -> bytes:
    with TemporaryDirectory() as directory:
        file = Path(directory) / "signoff.db"
        SqliteStore(file).close()
        return file.read_bytes()


def ready(file: Path) -> Path:
    """The file, which is there from now on; for whoever is the first to open it."""
    if not file.exists():
        file.touch(mode=0o600)
        file.write_bytes(_content())
    return file
