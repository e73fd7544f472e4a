"""The config that a toolset takes as a JSON schema, however the toolset declares it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from pydantic import PydanticUserError, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue, JsonSchemaWarningKind
from pydantic_ai.toolsets import AbstractToolset

from signoff.config.config_check import HIDDEN, shape_of
from signoff.core.credential import secret_name
from signoff.toolsets.context import CONTEXTS
from signoff.toolsets.factory import Registration


def config_schema(target: object) -> dict[str, Any]:
    """The config schema of a class, function, instance or `Registration`. Defaults that are secrets are hidden."""
    return _without_secrets(_schema(target))


def is_secret(schema: Mapping[str, Any]) -> bool:
    """Whether a key's schema declares its value as a secret, as pydantic's `SecretStr` does."""
    return schema.get("writeOnly") is True or schema.get("format") == "password"


def _schema(target: object) -> dict[str, Any]:
    if isinstance(target, Registration):
        return _preset(_schema(target.toolset), target.config)
    if isinstance(target, AbstractToolset) or not callable(target):
        return {"type": "object", "properties": {}, "additionalProperties": False}
    shape = shape_of(target, CONTEXTS)
    if shape.model is not None:
        return _of_type(shape.model) or {"type": "object"}
    if shape.schema is not None:
        return dict(shape.schema)
    if shape.config is not None:
        return {"type": "object"}
    properties = {name: _property(shape.hints.get(name, Any), one) for name, one in shape.keywords.items()}
    required = [name for name, one in shape.keywords.items() if one.default is one.empty and name != "id"]
    properties.pop("id", None)
    return {
        "type": "object",
        "properties": properties,
        **({"required": required} if required else {}),
        "additionalProperties": shape.takes_any,
    }


def _preset(schema: dict[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with the values of a registration as defaults, which are no longer required."""
    known: Mapping[str, Mapping[str, Any]] = schema.get("properties") or {}
    properties = {key: {**one, "default": config[key]} if key in config else one for key, one in known.items()}
    required = [key for key in schema.get("required") or () if key not in config]
    rest = {key: value for key, value in schema.items() if key not in ("properties", "required")}
    return {
        **rest,
        **({"properties": properties} if "properties" in schema else {}),
        **({"required": required} if required else {}),
    }


class _Lenient(GenerateJsonSchema):
    """Describes a type without a JSON schema as anything, and leaves out a default that JSON cannot represent."""

    ignored_warning_kinds: set[JsonSchemaWarningKind] = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> JsonSchemaValue:
        return {}


def _of_type(kind: Any) -> dict[str, Any]:
    """The schema of a type; empty for one that pydantic does not know."""
    try:
        return TypeAdapter(kind).json_schema(schema_generator=_Lenient)
    except (PydanticUserError, TypeError, NameError):
        return {}


def _property(kind: Any, one: inspect.Parameter) -> dict[str, Any]:
    schema = _of_type(kind)
    simple = one.default is None or isinstance(one.default, (str, int, float, bool))
    return {**schema, "default": one.default} if simple else schema


def _without_secrets(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without the defaults of secret keys, recognised by their declaration or their name."""
    found = dict(schema)
    if isinstance(schema.get("properties"), dict):
        found["properties"] = {key: _hidden(key, one) for key, one in schema["properties"].items()}
    if isinstance(schema.get("$defs"), dict):
        found["$defs"] = {name: _without_secrets(one) for name, one in schema["$defs"].items()}
    return found


def _hidden(key: str, schema: Any) -> Any:
    if schema is True or schema is False:  # true accepts everything, false nothing
        return schema
    arms: list[Any] = [schema, *(schema.get("anyOf") or ())]
    default = schema.get("default")
    tells = default not in (None, "") and not isinstance(default, (bool, int, float))
    secret = any(is_secret(one) for one in arms) or secret_name(key)
    return {**_without_secrets(schema), **({"default": HIDDEN} if secret and tells else {})}
