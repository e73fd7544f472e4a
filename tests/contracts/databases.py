"""The stores that keep the contract."""

from __future__ import annotations

from collections.abc import Callable

from signoff.ports import Store

STORES = ("memory", "sqlite", "postgres")
WATCHED = (*STORES, "postgres, unannounced")
"""With the other way to hear of changes, for servers that cannot announce them."""


class Database:
    """One place where things are kept. `open()` gives another store object on it; in memory, the same."""

    def __init__(self, name: str, make: Callable[[], Store]) -> None:
        self.name = name
        self._make = make
        self._opened: list[Store] = []

    def open(self) -> Store:
        store = self._make()
        self._opened.append(store)
        return store

    def close(self) -> None:
        for store in self._opened:
            store.close()
