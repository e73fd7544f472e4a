"""What a program does with its stores when it ends, for tests that call one in their own process."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from signoff.store import durable_store


@contextmanager
def closed_in_the_end() -> Generator[None]:
    """Close what was opened within: two threads look after each store that is left open, until the tests end."""
    before = set(durable_store._stores)
    yield
    for store in set(durable_store._stores) - before:
        store.close()
