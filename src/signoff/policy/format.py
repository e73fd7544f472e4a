"""Formats of values in files: each reads a value and describes itself as JSON Schema.

The readers of files are tables of formats. `config/json_schemas.py` makes the JSON Schemas from the same tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any, Generic, TypeAlias, TypeVar, overload

from signoff.core.moment import LONGEST, UNIT, parse_duration
from signoff.policy.operators import kind_of
from signoff.policy.phrases import did_you_mean, shown
from signoff.policy.placed_value import ConfigValue

T = TypeVar("T")
U = TypeVar("U")
Schema: TypeAlias = "Mapping[str, Any]"


class Format(Generic[T]):
    """How one value is written. `read` raises `PolicyError` with the place of the error."""

    __slots__ = ("name", "read", "schema")

    @overload
    def __init__(self, read: Callable[[ConfigValue], T], schema: Schema, name: str = "") -> None: ...
    @overload
    def __init__(self, read: Callable[..., T], schema: Schema, name: str = "") -> None: ...

    def __init__(self, read: Callable[..., T], schema: Schema, name: str = "") -> None:
        self.read = read
        """Takes a value with its place, and any further arguments that the reader needs."""
        self.schema = schema
        """The JSON Schema. A format inside it stands for its own schema, and under `$ref` for a reference to it."""
        self.name = name
        """Its name in the schema, if several places refer to it."""

    def about(self, description: str) -> Format[T]:
        """Return the same format with a description, which editors show for the key."""
        return Format(self.read, {"description": description, **({"$ref": self} if self.name else self.schema)})

    def by(self, read: Callable[..., U]) -> Format[U]:
        """Return the same format, read by another function."""
        return Format(read, self.schema, self.name)

    def into(self, make: Callable[[T], U]) -> Format[U]:
        """Return the same format, with `make` applied to what was read."""
        return Format(lambda spot: make(self.read(spot)), self.schema, self.name)


class DeferredFormat(Format[T]):
    """A format whose schema is made when somebody looks at it: few programs do, and making it loads modules."""

    __slots__ = ("_make",)

    def __init__(self, read: Callable[[ConfigValue], T], make: Callable[[], Schema], name: str = "") -> None:
        self.read = read
        self.name = name
        self._make = make

    @property
    def schema(self) -> Schema:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._make()


class MappingFormat(Format[dict[str, Any]]):
    """A mapping with these keys and no others.

    `short`: the key that a value which is not a mapping stands for. `required`: keys that must be present, each with
    the error and the fix if it is missing. `needs`: at least one of these keys must be present. `advice`: returns the
    hint about an unknown key. `schema`: further constraints between keys, which the reader checks itself.
    """

    __slots__ = ("_advice", "_needs", "_required", "_short", "_what", "keys")

    def __init__(
        self,
        keys: Mapping[str, Format[Any]],
        *,
        what: str = "a mapping",
        short: str = "",
        required: Mapping[str, tuple[str, str]] | None = None,
        needs: Iterable[str] = (),
        advice: Callable[[str, Iterable[str]], str] = did_you_mean,
        description: str = "",
        name: str = "",
        schema: Schema | None = None,
    ) -> None:
        self.keys = keys
        self._what = what
        self._short = short
        self._required = required or {}
        self._needs = tuple(needs)
        self._advice = advice
        said = {"description": description} if description else {}
        shape: dict[str, Any] = {"type": "object", "additionalProperties": False, **(schema or {})}
        if self._required:
            shape["required"] = [*self._required]
        if self._needs:
            shape["anyOf"] = [{"required": [key]} for key in self._needs]
        shape["properties"] = keys
        super().__init__(self._read, {**said, "anyOf": [keys[short], shape]} if short else {**said, **shape}, name)

    def entries(self, spot: ConfigValue) -> dict[str, ConfigValue]:
        """Return the keys that are present, each with its place. Unknown keys are refused."""
        if self._short and not isinstance(spot.value, dict):
            return {self._short: spot}
        entries = spot.entries(what=self._what)
        self.check(entries, spot)
        return entries

    def check(self, entries: Mapping[str, ConfigValue], spot: ConfigValue) -> None:
        """Raise for a key that is unknown, or missing from the mapping at `spot`."""
        for key, value in entries.items():
            if key not in self.keys:
                raise value.wrong_key(f"unknown key {shown(key)}", self._advice(key, self.keys))
        for key, (what, fix) in self._required.items():
            if key not in entries:
                raise spot.wrong(what, fix)
        if self._needs and not any(key in entries for key in self._needs):
            raise spot.wrong("this requires nothing", f"write one of {', '.join(f'`{key}`' for key in self._needs)}")

    def values(self, entries: Mapping[str, ConfigValue]) -> dict[str, Any]:
        """Read the entries whose keys belong to this mapping."""
        return {key: self.keys[key].read(spot) for key, spot in entries.items() if key in self.keys}

    def _read(self, spot: ConfigValue) -> dict[str, Any]:
        return self.values(self.entries(spot))


def text(what: str = "a text") -> Format[str]:
    """A text that is not blank."""
    return Format(lambda spot: spot.text(what), {"type": "string", "pattern": r"\S"}, "text")


def line(what: str = "a text") -> Format[str]:
    """A text that is not blank, on one line."""
    return Format(lambda spot: spot.line(what), {"type": "string", "pattern": r"\S"}, "text")


def matching(pattern: str, what: str, wrong: str, fix: str, name: str = "") -> Format[str]:
    """A text that a regular expression matches in full; in `wrong`, `{}` is the text."""

    def read(spot: ConfigValue) -> str:
        found = spot.text(what)
        if not re.fullmatch(pattern, found):
            raise spot.wrong(wrong.format(shown(found)), fix)
        return found

    return Format(read, {"type": "string", "pattern": f"^{pattern}$"}, name)


def made(make: Callable[[str], T], what: str, wrong: str) -> Format[T]:
    """A text that is converted by `make`, which raises a `ValueError` with the reason if it cannot be."""

    def read(spot: ConfigValue) -> T:
        found = spot.text(what)
        try:
            return make(found)
        except ValueError as error:
            raise spot.wrong(f"{wrong} {shown(found)}", str(error)) from error

    return text().by(read)


def choice(words: Iterable[str], *, description: str = "", name: str = "") -> Format[str]:
    """One of several words."""
    known = tuple(words)
    said = {"description": description} if description else {}
    return Format(lambda spot: spot.choice(known), {**said, "enum": [str(word) for word in known]}, name)


def each(one: Format[T], what: str, *, description: str = "", name: str = "") -> Format[tuple[T, ...]]:
    """One value, or a list of them."""
    said = {"description": description} if description else {}
    return Format(
        lambda spot: tuple(one.read(item) for item in spot.one_or_more(what)),
        {**said, "anyOf": [one, {"type": "array", "minItems": 1, "items": one}]},
        name,
    )


def texts(one: Format[T], what: str) -> Format[tuple[T, ...]]:
    """A text, or a list of them."""
    return each(one, what, description="A text, or a list of them.", name="texts")


def names(what: str, *, some: bool = False) -> Format[list[ConfigValue]]:
    """A name or a list of names without duplicates. The list may be empty; with `some`, the schema refuses that."""
    least = {"minItems": 1} if some else {}
    items = {"type": "array", **least, "uniqueItems": True, "items": text()}
    return Format(lambda spot: read_names(spot, what), {"anyOf": [text(), items]}, "someNames" if some else "names")


def read_names(spot: ConfigValue, what: str) -> list[ConfigValue]:
    """Read a name or a list of names without duplicates. The list may be empty."""
    if spot.value == []:
        return []
    found: dict[str, ConfigValue] = {}
    for item in spot.one_or_more(f"a list of {what}"):
        name = item.text(f"one of the {what}")
        if name in found:
            raise item.wrong(f"{shown(name)} is named twice", "keep one of them")
        found[name] = item
    return list(found.values())


def read_elsewhere(spot: ConfigValue) -> None:
    """Do nothing: the caller, who knows more, reads the value, such as the rules of a toolset."""


def read_whole(spot: ConfigValue, least: int = 0) -> int:
    """Read an integer that is at least `least`."""
    if isinstance(spot.value, bool) or not isinstance(spot.value, int):
        raise spot.wrong(f"this should be a whole number, not {kind_of(spot.value)}")
    if spot.value < least:
        raise spot.wrong(f"{spot.value} is too small", f"it should be {least} or more")
    return spot.value


def read_duration(spot: ConfigValue) -> timedelta:
    """Read a duration: `30s`, `15m`, `2h`, `1d`, or a whole number of seconds."""
    value = spot.value
    fix = "write `30s`, `15m`, `2h`, `1d` or a whole number of seconds"
    if isinstance(value, int) and not isinstance(value, bool):
        seconds = value
    elif isinstance(value, str) and (length := parse_duration(value)) is not None:
        seconds = int(length.total_seconds())
    else:
        what = shown(value) if isinstance(value, str) else kind_of(value)
        raise spot.wrong(f"this should be a duration, not {what}", fix)
    if seconds < 1:
        raise spot.wrong("the time must be more than 0", fix)
    if seconds > LONGEST.total_seconds():
        raise spot.wrong("the time is longer than ten years", fix)
    return timedelta(seconds=seconds)


def _read_mapping(spot: ConfigValue) -> dict[str, Any]:
    spot.entries()
    return spot.value


ANY_MAPPING = Format(_read_mapping, {"type": "object"})
FLAG = Format(ConfigValue.flag, {"type": "boolean"})
COUNT = Format(ConfigValue.count, {"type": "integer", "minimum": 1})
WHOLE = Format(read_whole, {"type": "integer", "minimum": 0}, "whole")
DURATION = Format(
    read_duration,
    {
        "description": "30s, 15m, 2h, 1d, or a whole number of seconds.",
        "anyOf": [COUNT, {"type": "string", "pattern": rf"^\s*0*[1-9][0-9]*{UNIT}\s*$"}],
    },
    "duration",
)
