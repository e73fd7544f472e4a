"""Check values against a JSON schema that somebody else wrote: the server of a tool, or a model that made a worker.

Neither a schema nor a value can make the check expensive. Every step is counted, and above a limit the check gives up,
by count, not by time. Patterns run in linear time (RE2) or not at all. A `$ref` fetches nothing over the network.
What cannot be checked raises `Unchecked`; nothing of it counts as valid.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from itertools import islice
from typing import Any, cast

from signoff.core.canonical import canonical
from signoff.errors import CannotCanonicalise
from signoff.policy.linear_regex import BadRegex, LinearRegex
from signoff.policy.phrases import cut

MOST_STEPS = 50_000
"""The limit for one value: a step takes about ten microseconds."""
MOST_IN_SCHEMA = 200_000
"""The limit for a schema itself, enough for more than a thousand properties."""
LONGEST_PATTERN = 1_000
_NOT_CHECKED = (
    *("unevaluatedProperties", "unevaluatedItems"),
    *("dependencies", "$recursiveRef", "disallow", "extends", "divisibleBy"),  # of older dialects
)
_TAKES_NO_WALK = frozenset(
    """$ref $dynamicRef allOf anyOf oneOf not if dependentSchemas properties required type enum const format minimum
    maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength minItems maxItems minProperties
    maxProperties pattern uniqueItems""".split()
)
"""Keywords that do not look at each part of a value, or that count it themselves."""
_A_STEP = 200
"""Characters times instructions of a pattern that take as long as a step."""

Keyword = Callable[[Any, Any, Any, Any], Iterator[Any]]
"""Checks one keyword of a schema: (validator, what the schema wants, value, schema). Yields errors."""


class Unchecked(Exception):
    """A value or a schema that cannot be checked; the message says why."""


def errors_in(schema: Mapping[str, Any], value: object, *, most: int) -> list[Any]:
    """Return why a value does not fit a schema, at most so many of jsonschema's errors. Raises `Unchecked`."""
    if (problem := problem_of(schema)) is not None:
        raise Unchecked("its schema is not a JSON schema") from problem
    return _checked(schema, value, most, _Work(MOST_STEPS, _size(schema)))


def problem_of(schema: object) -> Any | None:
    """Return the first of jsonschema's errors about a schema; None if it is one. Raises `Unchecked`."""
    found = _checked(_validator().META_SCHEMA, schema, 1, _Work(MOST_IN_SCHEMA, 1))
    return found[0] if found else None


def _checked(schema: Mapping[str, Any], value: object, most: int, work: _Work) -> list[Any]:
    mark = _work.set(work)
    try:
        known = import_module("jsonschema_specifications").REGISTRY
        return list(islice(_validator()(schema, registry=known).iter_errors(value), most))
    except Unchecked:
        raise
    except RecursionError as error:
        raise Unchecked("it is nested too deep") from error
    except Exception as error:  # a broken reference or an odd value
        raise Unchecked(cut(str(error), 200)) from error
    finally:
        _work.reset(mark)


@dataclass(slots=True)
class _Work:
    """What a check may still do."""

    most: int
    anchor: int
    """Steps to find where a reference by name leads: the whole schema is searched for it."""
    spent: int = 0

    def spend(self, steps: int) -> None:
        self.spent += steps
        if self.spent > self.most:
            raise Unchecked(f"it takes more than {self.most:,} steps")


_work: ContextVar[_Work] = ContextVar("signoff_schema_work")


@cache
def _validator() -> Any:
    """Return the validator class: every keyword counted, and whatever a part of a schema says, of one dialect."""
    plain: Any = import_module("jsonschema").Draft202012Validator
    own: dict[str, Keyword] = {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "uniqueItems": _unique_items,
        "format": _nothing,
        **{name: _not_checked(name) for name in _NOT_CHECKED},
    }
    checks = {name: _counted(name, check) for name, check in {**plain.VALIDATORS, **own}.items()}
    made: Any = import_module("jsonschema.validators").extend(plain, checks)
    named = [(field.name, field.alias) for field in import_module("attrs").fields(made) if field.init]

    def evolve(self: Any, **changes: Any) -> Any:
        return made(**{alias: getattr(self, name) for name, alias in named} | changes)

    made.evolve = evolve  # the inherited one takes another class for a part with a `$schema` of its own
    return made


def _counted(name: str, check: Keyword) -> Keyword:
    def counted(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any]:
        work = _work.get()
        work.spend(1 + _length(wanted) + (0 if name in _TAKES_NO_WALK else _length(value)))
        if name == "dependentRequired":
            work.spend(_size(wanted))
        elif name in ("enum", "const"):
            work.spend(_length(wanted) * _size(value))
        elif name in ("$ref", "$dynamicRef") and not (isinstance(wanted, str) and wanted.startswith("#/")):
            work.spend(work.anchor)
        for error in check(validator, wanted, value, schema) or ():
            work.spend(1 + _size(value) + _size(wanted))  # its message quotes both
            yield error

    return counted


def _length(value: object) -> int:
    return len(value) if isinstance(value, (list, dict)) else len(value) // 100 if isinstance(value, str) else 1  # pyright: ignore[reportUnknownArgumentType]


def _size(value: object) -> int:
    """How large a value is, in steps: its parts, and its texts by their length."""
    size, parts = 0, [value]
    while parts:
        part = parts.pop()
        size += 1
        if isinstance(part, str):
            size += len(part) // 100
        elif isinstance(part, Mapping):
            parts.extend(cast("Mapping[str, object]", part).values())
        elif isinstance(part, (list, tuple)):
            parts.extend(cast("Sequence[object]", part))
    return size


def _error(text: str) -> Any:
    return import_module("jsonschema").ValidationError(text)


def _nothing(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any]:
    yield from ()


def _not_checked(name: str) -> Keyword:
    def check(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any]:
        raise Unchecked(f"its schema says `{name}`, which signoff does not check")

    return check


def _pattern(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any]:
    if isinstance(value, str) and not _matches(wanted, value):
        yield _error(f"{value!r} does not match {wanted!r}")


def _pattern_properties(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any]:
    for pattern, inner in wanted.items() if isinstance(value, dict) else ():
        for key, item in cast("dict[str, Any]", value).items():
            if _matches(pattern, key):
                yield from validator.descend(item, inner, path=key, schema_path=pattern)


def _additional_properties(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any]:
    if not isinstance(value, dict):
        return
    known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
    for key, item in cast("dict[str, Any]", value).items():
        _work.get().spend(1)
        if key in known or any(_matches(pattern, key) for pattern in patterns):
            continue
        if wanted is False:
            yield _error(f"Additional properties are not allowed ({key!r} was unexpected)")
            return
        yield from validator.descend(item, wanted, path=key)


def _unique_items(validator: Any, wanted: Any, value: Any, schema: Any) -> Iterator[Any]:
    if not wanted or not isinstance(value, list):
        return
    items = cast("list[object]", value)
    _work.get().spend(_size(items))
    try:
        forms = {canonical(item) for item in items}
    except CannotCanonicalise as error:
        raise Unchecked(str(error)) from error
    if len(forms) < len(items):
        yield _error(f"{items!r} has non-unique elements")


def _matches(pattern: str, text: str) -> bool:
    """Whether a pattern occurs in a text. Raises `Unchecked` if it cannot run in linear time, or is unclear."""
    work = _work.get()
    work.spend(1 + len(pattern))
    regex = _regex(pattern)
    if isinstance(regex, str):
        raise Unchecked(f"the pattern {json.dumps(pattern[:100], ensure_ascii=False)} is not checked: {regex}")
    work.spend(len(text) * regex.size // _A_STEP)
    if regex.has_word_boundaries and not text.isascii():
        raise Unchecked(f"whether {json.dumps(pattern[:100])} matches a text that is not ASCII is unclear")
    return regex.search(text)


@lru_cache(maxsize=256)
def _regex(pattern: str) -> LinearRegex | str:
    """The pattern, or why it cannot be used."""
    if len(pattern) > LONGEST_PATTERN:
        return f"it is longer than {LONGEST_PATTERN:,} characters"
    try:
        return LinearRegex(pattern)
    except BadRegex as error:
        return str(error)
