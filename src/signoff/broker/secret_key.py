"""Secret keys that all processes on a store share: to compare secrets without showing them, and to sign cookies."""

from __future__ import annotations

import secrets

from signoff.ports import Store, Transaction

NAME = "veil"
COOKIES = "cookies"
"""The name of the key that signs cookies."""


async def secret_key(store: Store, name: str = NAME) -> bytes:
    """Return the store's key of this name; it is made on first use."""
    if (key := await store.read(lambda tx: tx.settings.get(name))) is None:

        def work(tx: Transaction) -> str:
            if (found := tx.settings.get(name)) is None:
                found = secrets.token_hex(32)
                tx.settings.put(name, found)
            return found

        key = await store.write("key", work)
    return bytes.fromhex(key)
