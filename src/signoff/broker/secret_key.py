"""The key by which processes on one store tell secrets apart without showing them."""

from __future__ import annotations

import secrets

from signoff.ports import Store, Transaction

NAME = "veil"


async def secret_key(store: Store) -> bytes:
    """The store's key, made on first use."""
    if (key := await store.read(lambda tx: tx.settings.get(NAME))) is None:

        def work(tx: Transaction) -> str:
            if (found := tx.settings.get(NAME)) is None:
                found = secrets.token_hex(32)
                tx.settings.put(NAME, found)
            return found

        key = await store.write("key", work)
    return bytes.fromhex(key)
