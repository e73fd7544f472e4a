"""JSON schemas in worker files: check them when they are read, and validate input and output against them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import GetCoreSchemaHandler
from pydantic_ai import StructuredDict
from pydantic_ai.exceptions import UserError
from pydantic_core import CoreSchema, core_schema

from signoff.policy.argument_schema import Unchecked, errors_in, problem_of
from signoff.policy.placed_value import ConfigValue

_MOST_PROBLEMS = 5
_LONGEST_PROBLEM = 1_000


def check_schema(schema: Mapping[str, Any], spot: ConfigValue) -> None:
    """Refuse what is no JSON schema of an object."""
    if schema.get("type") != "object":
        fix = "for example {type: object, properties: {title: {type: string}}, required: [title]}"
        raise spot.wrong("this should be a JSON schema of type `object`", fix)
    try:
        error = problem_of(schema)
    except Unchecked as doubt:
        raise spot.wrong(f"this is not a JSON schema: {doubt}") from doubt
    if error is not None:
        raise spot.wrong(f"this is not a JSON schema: {_line(error)}") from error


def problems_in(value: Any, schema: Mapping[str, Any]) -> tuple[str, ...]:
    """Return why a value does not fit a schema, one line for each problem, at most five."""
    try:
        return tuple(map(_line, errors_in(schema, value, most=_MOST_PROBLEMS)))
    except Unchecked as doubt:
        return (f"it cannot be checked: {doubt}",)


def _line(error: Any) -> str:
    where = ".".join(str(step) for step in error.absolute_path)
    text = str(error.message)
    text = text if len(text) <= _LONGEST_PROBLEM else f"{text[:_LONGEST_PROBLEM]}…"
    return f"{where}: {text}" if where else text


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
