"""Key paths into a call's arguments or a run's deps: `amount`, `user.name`, `items.0.price`, `/a.b`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast


class Absent:
    """The type of `ABSENT`: there is no value. Not the same as null."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = Absent()


class BadKey(ValueError):
    """An invalid key; the message says why and what to write."""


@dataclass(frozen=True, slots=True)
class KeyPath:
    """Steps into nested mappings and lists, and the text as written."""

    text: str
    steps: tuple[str, ...]

    @classmethod
    def read(cls, text: str) -> KeyPath:
        """Parse a key path: `a.b.0` is split at dots; a leading `/` makes it a JSON pointer, for keys with dots."""
        if text.startswith("/"):
            return cls(text, tuple(step.replace("~1", "/").replace("~0", "~") for step in text[1:].split("/")))
        steps = tuple(text.split("."))
        if not all(steps):
            raise BadKey("a key has no empty parts; a key that holds a dot is written as a pointer: `/a.b`")
        if any("*" in step for step in steps):
            raise BadKey("a key has no wildcards; name the place exactly, or a key with a star as a pointer: `/a*`")
        return cls(text, steps)

    def below(self, text: str) -> KeyPath:
        """Return the path of a key in a mapping under this one."""
        inner = KeyPath.read(text)
        return KeyPath(f"{self.text}.{text.removeprefix('/')}" if self.text else text, (*self.steps, *inner.steps))

    def in_args(self, value: Any) -> Any:
        """Return the value at this path in JSON values, or `ABSENT`."""
        for step in self.steps:
            value = _in_json(value, step)
            if value is ABSENT:
                return ABSENT
        return value

    def in_deps(self, value: Any) -> Any:
        """Return the value at this path in a Python object, by mapping keys and public attributes, or `ABSENT`.

        Exceptions that an attribute raises propagate.
        """
        for step in self.steps:
            if isinstance(value, (Mapping, list, tuple, str, int, float)) or value is None:
                value = _in_json(value, step)
            else:
                value = _attribute(value, step)
            if value is ABSENT:
                return ABSENT
        return value


TOP = KeyPath("", ())


def _in_json(value: Any, step: str) -> Any:
    if isinstance(value, Mapping):
        return cast("Mapping[str, Any]", value).get(step, ABSENT)
    if isinstance(value, (list, tuple)):
        items = cast("Sequence[Any]", value)
        if step.isascii() and step.isdecimal() and len(step) < 10 and str(int(step)) == step and int(step) < len(items):
            return items[int(step)]
    return ABSENT


def _attribute(value: Any, step: str) -> Any:
    if step.startswith("_"):
        return ABSENT
    try:
        return getattr(value, step)
    except AttributeError:
        # A property that exists but raises AttributeError must not count as an attribute that does not exist.
        if any(step in vars(kind) for kind in type(value).__mro__):
            raise
        return ABSENT
