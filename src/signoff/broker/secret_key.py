"""Keys that processes on one store share: to tell secrets apart without showing them, to sign what browsers hold."""

from __future__ import annotations

import secrets

from signoff.ports import Store, Transaction

NAME = "veil"
COOKIES = "cookies"
"""Of the key that signs cookies."""


async def secret_key(store: Store, name: str = NAME) -> bytes:
    """The store's key of this name, made on first use."""
    if (key := await store.read(lambda tx: tx.settings.get(name))) is None:

        def work(tx: Transaction) -> str:
            if (found := tx.settings.get(name)) is None:
                found = secrets.token_hex(32)
                tx.settings.put(name, found)
            return found

        key = await store.write("key", work)
    return bytes.fromhex(key)
