"""JSON schemas in worker files: check them when they are read, and validate input and output against them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from pydantic import GetCoreSchemaHandler
from pydantic_ai import StructuredDict
from pydantic_ai.exceptions import UserError
from pydantic_core import CoreSchema, core_schema

from signoff.policy.placed_value import ConfigValue

_MOST_PROBLEMS = 5


def check_schema(schema: Mapping[str, Any], spot: ConfigValue) -> None:
    """Refuse what is no JSON schema of an object."""
    jsonschema: Any = import_module("jsonschema")
    if schema.get("type") != "object":
        fix = "for example {type: object, properties: {title: {type: string}}, required: [title]}"
        raise spot.wrong("this should be a JSON schema of type `object`", fix)
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except (jsonschema.SchemaError, RecursionError) as error:
        where = ".".join(str(step) for step in getattr(error, "absolute_path", ()))
        what = getattr(error, "message", "it is nested too deep")
        raise spot.wrong(f"this is not a JSON schema: {f'{where}: ' if where else ''}{what}") from error


def problems_in(value: Any, schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Return why a value does not fit a schema, one line for each problem, at most five."""
    jsonschema: Any = import_module("jsonschema")
    known: Any = import_module("jsonschema_specifications").REGISTRY
    try:
        # With a registry of its own, a `$ref` in a schema fetches nothing over the network.
        errors: list[Any] = list(jsonschema.Draft202012Validator(schema, registry=known).iter_errors(value))
    except Exception as error:  # a broken reference or pattern: what cannot be checked does not fit
        return (f"it cannot be checked: {error}",)
    lines: list[str] = []
    for error in errors[:_MOST_PROBLEMS]:
        where = ".".join(str(step) for step in error.absolute_path)
        lines.append(f"{where}: {error.message}" if where else str(error.message))
    return tuple(lines)


def output_type(schema: Mapping[str, Any], spot: ConfigValue) -> type[dict[str, Any]]:
    """Return a type for answers that fit the schema. The model is told what does not fit, and answers again."""
    check_schema(schema, spot)
    try:
        structured = StructuredDict(dict(schema))
    except UserError as error:
        raise spot.wrong(f"models do not accept this schema: {error}") from error

    def fits(value: dict[str, Any]) -> dict[str, Any]:
        if problems := problems_in(value, schema):
            raise ValueError("; ".join(problems))
        return value

    class Answer(structured):  # pyright: ignore[reportGeneralTypeIssues, reportUntypedBaseClass]
        @classmethod
        def __get_pydantic_core_schema__(cls, source_type: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
            plain = core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema())
            return core_schema.no_info_after_validator_function(fits, plain)

    Answer.__name__ = Answer.__qualname__ = "answer"
    return Answer
