"""The undo log of a transaction in memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Changes:
    """The undo log since the last commit: how to take back each change."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], object]] = []
        self.is_news = False
        """Whether watchers need to be told about the changes."""

    def __bool__(self) -> bool:
        return bool(self._undo)

    def add(self, take_back: Callable[[], object]) -> None:
        """Note how to undo a change that others can see. Call it before the change."""
        self._undo.append(take_back)
        self.is_news = True

    def quietly(self, take_back: Callable[[], object]) -> None:
        """Note how to undo a change that others may not see. Call it before the change."""
        self._undo.append(take_back)

    def set(self, table: dict[K, V], key: K, value: V) -> None:
        self.add(partial(_restore, table, key, table.get(key)))
        table[key] = value

    def drop(self, table: dict[K, V], key: K) -> None:
        self.add(partial(table.__setitem__, key, table[key]))
        del table[key]

    def commit(self) -> bool:
        """Drop the undo log. Returns whether watchers need to be told."""
        self._undo.clear()
        is_news, self.is_news = self.is_news, False
        return is_news

    def roll_back(self) -> None:
        while self._undo:
            self._undo.pop()()
        self.is_news = False


def _restore(table: dict[K, V], key: K, value: V | None) -> None:
    if value is None:
        del table[key]
    else:
        table[key] = value
