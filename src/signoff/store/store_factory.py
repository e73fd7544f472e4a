"""Open a store from its URL."""

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
    """Open the store that a URL names. A relative SQLite path is resolved against `root`.

    With `upgrade="auto"` an SQLite file of an older signoff is migrated after a backup. With `"refuse"`, and always on
    a server, a `SchemaError` says what to run.
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
    # The message leaves out the value: it may come from an environment variable and be a secret.
    where = "--store, SIGNOFF_STORE or `store` in signoff.yaml"
    return WrongUse(f"{where} does not name a store; write one of: {EXAMPLES}")
