"""Open a store from its URL."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from signoff.errors import WrongUse
from signoff.store.store_urls import names_file, sqlite_path

if TYPE_CHECKING:
    from signoff.store.memory_store import MemoryStore
    from signoff.store.postgres import PostgresStore
    from signoff.store.sqlite import SqliteStore

EXAMPLES = "sqlite:.signoff/signoff.db, postgresql://user@host/database, memory:"


def open_store(url: str, *, root: str | os.PathLike[str] = ".") -> SqliteStore | PostgresStore | MemoryStore:
    """Open the store that a URL names. A relative SQLite path is resolved against `root`."""
    if why := why_no_store(url):
        raise WrongUse(f"--store, SIGNOFF_STORE or `store` in signoff.yaml {why}")
    match url.partition(":")[0].lower():
        case "sqlite":
            from signoff.store.sqlite import SqliteStore

            return SqliteStore(sqlite_path(url, root))
        case "memory":
            from signoff.store.memory_store import MemoryStore

            return MemoryStore()
        case _:
            from signoff.store.postgres import PostgresStore

            return PostgresStore(url)


def why_no_store(url: str) -> str:
    """Why a URL names no store; empty if it does. Nothing is opened.

    The text leaves out the value: it may come from an environment variable and be a secret.
    """
    kind, _, rest = url.partition(":")
    match kind.lower():
        case "sqlite":
            return "names no file; write it as sqlite:.signoff/signoff.db" if not names_file(url) else ""
        case "postgresql" | "postgres" if rest.startswith("//"):
            return ""
        case "memory" if url == f"{kind}:":
            return ""
        case _:
            return f"does not name a store; write one of: {EXAMPLES}"
