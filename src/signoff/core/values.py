"""Frozen dataclasses that are made, copied and looked at many times for each call, without what Python adds to that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class Changeable:
    """A frozen dataclass without slots, of which copies with other values are made."""

    def changed(self, **fields: Any) -> Self:
        """A copy with other values in some fields: `dataclasses.replace`, several times faster. Nothing is checked."""
        value = object.__new__(type(self))
        held = value.__dict__
        held.update(self.__dict__)
        held.update(fields)
        return value


class cached(Generic[T]):
    """`functools.cached_property` as it is from Python 3.12 on: without a lock that all instances share."""

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
