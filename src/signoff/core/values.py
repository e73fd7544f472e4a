"""Fast frozen dataclasses: cheap copies and cached properties, for values that are used many times for each call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class Changeable:
    """Base of frozen dataclasses without slots that can be copied with other values."""

    def changed(self, **fields: Any) -> Self:
        """Copy with other values in some fields: `dataclasses.replace`, several times faster. Nothing is checked."""
        value = object.__new__(type(self))
        held = value.__dict__
        held.update(self.__dict__)
        held.update(fields)
        return value


class cached(Generic[T]):
    """`functools.cached_property` as in Python 3.12 and later: without a lock that all instances share."""

    def __init__(self, work_out: Callable[[Any], T]) -> None:
        self._work_out = work_out
        self.__doc__ = work_out.__doc__

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type[Any]) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type[Any]) -> T: ...
    def __get__(self, instance: object | None, owner: type[Any]) -> Self | T:
        if instance is None:
            return self
        value = instance.__dict__[self._name] = self._work_out(instance)
        return value
