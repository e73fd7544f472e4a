"""From what a user writes after `store:` to a store."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from signoff.errors import WrongUse
from signoff.store.store_urls import sqlite_path

if TYPE_CHECKING:
    from signoff.ports import Store
    from signoff.store.sqlite_file import Upgrade

EXAMPLES = "sqlite:.signoff/signoff.db, postgresql://user@host/database, memory:"


def open_store(url: str, *, root: str | os.PathLike[str] = ".", upgrade: Upgrade = "auto") -> Store:
    """The store a URL names. A relative SQLite path begins at `root`.

    With `upgrade="auto"` a file of an older signoff is brought up to date after a backup; with `"refuse"`, and on a
    server always, a `SchemaError` says what to run.
    """
    kind, colon, rest = url.partition(":")
    if not colon:
        raise _no_store()
    match kind.lower():
        case "sqlite":
            from signoff.store.sqlite import SqliteStore

            return SqliteStore(sqlite_path(url, root), upgrade=upgrade)
        case "postgresql" | "postgres" if rest.startswith("//"):
            from signoff.store.postgres import PostgresStore

            return PostgresStore(url)
        case "memory" if not rest:
            from signoff.store.memory_store import MemoryStore

            return MemoryStore()
        case _:
            raise _no_store()


def _no_store() -> WrongUse:
    # The value itself is not told: it may be that of a variable, meant for something else.
    where = "--store, SIGNOFF_STORE or `store` in signoff.yaml"
    return WrongUse(f"{where} does not name a store; write one of: {EXAMPLES}")
