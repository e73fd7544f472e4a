"""Views as JSON: what commands print with `--json`, what the API answers, and what a remote command reads of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cache
from types import NoneType
from typing import Any, ClassVar, TypeVar, cast, get_args, get_origin, get_type_hints

from signoff.core.moment import iso

FORMAT = 3
"""The format of all views. A server names it with every answer, and a remote command refuses another one.

It rises by one when a key goes or gets another name, or when the type or the meaning of its value changes. It does not
rise when a key is added: whoever reads a view passes over keys that they do not know.
"""

T = TypeVar("T")


class View:
    """Base of all views. Their texts are safe to show: secrets are masked, hidden characters are visible."""

    __slots__ = ()
    __pydantic_config__: ClassVar[Mapping[str, Any]] = {"use_attribute_docstrings": True}
    """For the server, which documents the API with it: pydantic is too slow to load for commands."""


class NotThisView(ValueError):
    """What was read is not the view that it should be."""


def to_json(view: object, plain: Callable[[object], object] | None = None) -> str:
    """Write a view, or data with views in it, as JSON. `plain` knows further values, as `plain_value` does these."""
    return json.dumps(view, ensure_ascii=False, default=plain or plain_value)


def plain_value(value: object) -> object:
    """What JSON has in place of a value that it does not know: one level of it."""
    if is_dataclass(value):
        return fields_of(value)
    if isinstance(value, datetime):
        return iso(value)
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    return str(value)


def fields_of(view: object) -> dict[str, object]:
    """The keys of a view, with their values."""
    return {name: getattr(view, name) for name in _names(type(view))}


def read(kind: type[T], data: object) -> T:
    """Read a view from JSON values. Keys that it does not have are passed over. Raises `NotThisView`."""
    try:
        return cast("T", _reader(kind)(data, ""))
    except (TypeError, ValueError) as error:
        raise error if isinstance(error, NotThisView) else NotThisView(str(error)) from error


@cache
def _names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(one.name for one in fields(kind))


@cache
def _reader(kind: Any) -> Callable[[Any, str], Any]:
    """What reads a value of this type; it is told at which key the value stands."""
    if is_dataclass(kind):
        return _view_reader(cast("type[Any]", kind))
    origin, inner = get_origin(kind), get_args(kind)
    if NoneType in inner:
        [other] = [one for one in inner if one is not NoneType]
        of_other = _reader(other)
        return lambda data, at: None if data is None else of_other(data, at)
    if origin is tuple:
        of_item = _reader(inner[0])
        return lambda data, at: tuple(of_item(one, at) for one in _of(list, data, at))
    if kind is datetime:
        return lambda data, at: datetime.fromisoformat(_of(str, data, at))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return lambda data, at: kind(data)
    if kind in (str, int, bool):
        return lambda data, at: _of(kind, data, at)
    if origin is dict:
        return lambda data, at: _of(dict, data, at)
    return lambda data, at: data


def _view_reader(kind: type[Any]) -> Callable[[Any, str], Any]:
    hints = get_type_hints(kind)
    readers = {one.name: _reader(hints[one.name]) for one in fields(kind)}
    needed = {one.name for one in fields(kind) if one.default is MISSING and one.default_factory is MISSING}

    def made(data: Any, at: str) -> Any:
        there = _of(dict, data, at)
        if missing := [name for name in readers if name in needed and name not in there]:
            raise NotThisView(f"its response has no {missing[0]!r}")
        return kind(**{name: of_key(there[name], name) for name, of_key in readers.items() if name in there})

    return made


def _of(kind: type[Any], data: Any, at: str) -> Any:
    if not (isinstance(data, dict) if kind is dict else type(data) is kind):
        raise NotThisView(f"in its response, {at!r} is not what it should be" if at else "it is not a signoff server")
    return data
