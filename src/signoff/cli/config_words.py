"""Describe a toolset's config in words: each key with its type, bounds, default, and whether it is a secret."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from signoff.core.visible_text import visible

Schema = Mapping[str, Any]

_TYPES = {"string": "text", "integer": "whole number", "object": "mapping", "boolean": "true or false"}
_DEEPEST = 5
"""Deepest nesting of mappings that is described; a model may contain itself."""


def config_lines(schema: Schema) -> Iterator[str]:
    """The config section of `signoff toolsets show`. Secret defaults are already hidden in the schema."""
    if not schema.get("properties"):
        any_keys = schema.get("additionalProperties", True)
        yield "\nconfig: any keys (no schema)" if any_keys else "\nit takes no config"
        return
    yield "\nconfig:"
    yield from (visible(f"  {line}") for line in _keys(schema, schema, ()))


def _keys(schema: Schema, top: Schema, above: Sequence[str]) -> Iterator[str]:
    """A line for each key, each followed by the keys of its mapping."""
    required = schema.get("required") or ()
    properties: Mapping[str, Schema] = schema.get("properties") or {}
    for key, written in properties.items():
        one = _followed(written, top)
        below = _mapping(one, top) if len(above) < _DEEPEST else None
        told = one.get("default") is not None and below is None
        default = f", default {_value(one['default'])}" if told else ""
        needed = ", needed" if key in required else ""
        about = " ".join(str(one.get("description") or "").split())
        yield f"{'.'.join((*above, key))}: {_type(one, top)}{default}{needed}" + (f". {about}" if about else "")
        if below is not None:
            yield from _keys(below, top, (*above, key))


def _value(default: object) -> str:
    from signoff.config.config_check import HIDDEN

    return HIDDEN if default == HIDDEN else repr(default)


def _followed(schema: Schema, top: Schema) -> Schema:
    """Resolve a `$ref`; keys written beside the reference win."""
    name = str(schema.get("$ref", ""))
    if not name.startswith("#/$defs/"):
        return schema
    definitions: Mapping[str, Schema] = top.get("$defs") or {}
    return {**definitions.get(name.removeprefix("#/$defs/"), {}), **schema}


def _mapping(schema: Schema, top: Schema) -> Schema | None:
    """The schema with the keys of a value that is a mapping, if they are known."""
    arms = [schema, *(_followed(one, top) for one in schema.get("anyOf") or ())]
    return next((one for one in arms if one.get("properties")), None)


def _type(schema: Schema, top: Schema) -> str:
    if "enum" in schema:
        return " | ".join(map(str, schema["enum"]))
    if "const" in schema:
        return str(schema["const"])
    if arms := schema.get("anyOf") or schema.get("oneOf"):
        followed = (_followed(one, top) for one in arms)
        return " | ".join(dict.fromkeys(_type(one, top) for one in followed if one.get("type") != "null"))
    return f"{_kind(schema, top)}{_bounds(schema)}"


def _kind(schema: Schema, top: Schema) -> str:
    from signoff.toolsets.config_schema import is_secret

    kind = schema.get("type")
    if kind == "array" and isinstance(schema.get("items"), dict):
        return f"list of {_type(_followed(schema['items'], top), top)}"
    word = _TYPES.get(str(kind), str(kind or "anything"))
    return f"secret {word}" if is_secret(schema) else word


def _bounds(schema: Schema) -> str:
    """The limits of a value, as a suffix of its type: `, at least 1`, ` from 1 to 100`, ` of at most 20 characters`."""
    least, most = schema.get("minimum"), schema.get("maximum")
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    parts = [f"above {above}"] if above is not None else []
    parts += [f"below {below}"] if below is not None else []
    if least is not None and most is not None:
        parts.append(f"from {least} to {most}")
    elif least is not None or most is not None:
        parts.append(f"at least {least}" if least is not None else f"at most {most}")
    if (step := schema.get("multipleOf")) is not None:
        parts.append(f"a multiple of {step}")
    number = " and ".join(parts)
    number = f", {number}" if number.startswith(("at ", "a ")) else f" {number}" if number else ""
    return f"{number}{_sizes(schema)}"


def _sizes(schema: Schema) -> str:
    items = _range(schema.get("minItems"), schema.get("maxItems"))
    characters = _range(schema.get("minLength"), schema.get("maxLength"))
    pattern = schema.get("pattern")
    return "".join(
        (
            f", {items}" if items else "",
            f" of {characters} characters" if characters else "",
            f" like `{pattern}`" if pattern else "",
        )
    )


def _range(least: int | None, most: int | None) -> str:
    if least is not None and most is not None:
        return f"{least} to {most}"
    return f"at least {least}" if least is not None else f"at most {most}" if most is not None else ""
