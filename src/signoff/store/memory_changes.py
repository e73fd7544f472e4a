"""What a transaction in memory changed, and the way back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Changes:
    """What was changed since the last commit, as the way back."""

    def __init__(self) -> None:
        self._undo: list[Callable[[], object]] = []
        self.is_news = False
        """Whether anybody can see a difference."""

    def __bool__(self) -> bool:
        return bool(self._undo)

    def add(self, take_back: Callable[[], object]) -> None:
        """Something is about to change that anybody can see."""
        self._undo.append(take_back)
        self.is_news = True

    def quietly(self, take_back: Callable[[], object]) -> None:
        """Something is about to change that perhaps nobody can see."""
        self._undo.append(take_back)

    def set(self, table: dict[K, V], key: K, value: V) -> None:
        self.add(partial(_restore, table, key, table.get(key)))
        table[key] = value

    def drop(self, table: dict[K, V], key: K) -> None:
        self.add(partial(table.__setitem__, key, table[key]))
        del table[key]

    def commit(self) -> bool:
        """Whether anybody can see a difference."""
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
