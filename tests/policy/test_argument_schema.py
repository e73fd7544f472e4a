"""A schema that a server or a model wrote cannot make its check expensive, and what is not checked is not valid."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from tests.profiles import examples
from tests.tables import table

from signoff.broker.edits import fitting
from signoff.core.request import ApprovalRequest
from signoff.errors import EditRefused
from signoff.policy import argument_schema
from signoff.policy.argument_schema import Unchecked, errors_in, problem_of

LONG = "a" * 1_000_000
BOMB = {
    "$defs": {**{f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(40)}, "d40": {}},
    "$ref": "#/$defs/d0",
}
ANCHORS = {"anyOf": [{"$anchor": f"a{n}"} for n in range(300)], "allOf": [{"$ref": f"#a{n}"} for n in range(300)]}
HOSTILE: dict[str, tuple[dict[str, Any], Any]] = {
    "references that double": (BOMB, {}),
    "a reference to itself": ({"$ref": "#"}, {}),
    "references by name": (ANCHORS, {}),
    "large enumerations": ({"enum": [["a"] * 500 + [n] for n in range(500)]}, ["a"] * 500),
    "many errors that quote": ({"anyOf": [{"type": "integer"}] * 300}, LONG),
    "a text for a slow pattern": ({"pattern": "(a?b?){900}c"}, LONG),
    "many patterns for many names": (
        {"patternProperties": {f"a{n}$": {} for n in range(500)}},
        {f"b{n}": 1 for n in range(500)},
    ),
    "many items": ({"items": {"type": "integer", "minimum": 0}}, list(range(100_000))),
    "deep": ({"items": {"$ref": "#"}}, json.loads("[" * 500 + "]" * 500)),
    "conditions on every item": ({"allOf": [{"items": {}}] * 3}, [1] * 20_000),
    "items that are looked for": ({"allOf": [{"contains": False, "minContains": 0}] * 3}, [1] * 20_000),
    "names of names": ({"allOf": [{"propertyNames": {}}] * 3}, {f"a{n}": 1 for n in range(20_000)}),
    "prefixes": ({"allOf": [{"prefixItems": [{}], "items": True}] * 3}, [1] * 20_000),
    "names that others need": (
        {"$defs": {"d": {"dependentRequired": {"a": ["a"] * 20_000}}}, "allOf": [{"$ref": "#/$defs/d"}] * 3},
        {"a": 1},
    ),
    **{
        name: ({name: wanted}, {"a": 1})
        for name, wanted in {
            "dependencies": {"a": ["b"]},
            "$recursiveRef": "#",
            "disallow": "object",
            "extends": {},
            "divisibleBy": 2,
        }.items()
    },
    "a lookahead": ({"pattern": "^(?!-)"}, "x"),
    "unevaluated": ({"unevaluatedProperties": False}, {}),
    "a word boundary beyond ASCII": ({"pattern": r"\bé"}, "é"),
    "a pattern in `not`": ({"not": {"pattern": "^(?!-)"}}, "x"),
}


@table("kind", HOSTILE)
def test_what_cannot_be_checked_in_so_many_steps_is_not_checked(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert argument_schema.MOST_STEPS == 50_000
    schema, value = HOSTILE[kind]
    with monkeypatch.context() as fewer:
        fewer.setattr(argument_schema, "MOST_STEPS", 5_000)
        _is_not_checked(schema, value)


def _is_not_checked(schema: dict[str, Any], value: Any) -> None:
    with pytest.raises(Unchecked):
        errors_in(schema, value, most=5)


@table("pattern", ["^(a+)+$", "^(a|a)*$", "(.*)*x$"])
@table("around", ["pattern", "patternProperties", "additionalProperties", "propertyNames", "$schema"])
def test_a_pattern_that_would_backtrack_for_years_does_not(pattern: str, around: str) -> None:
    text = "a" * 60 + "!"
    schema: dict[str, Any] = {
        "pattern": {"properties": {"y": {"pattern": pattern}}},
        "patternProperties": {"patternProperties": {pattern: False}},
        "additionalProperties": {"additionalProperties": False, "patternProperties": {pattern: {}}},
        "propertyNames": {"propertyNames": {"pattern": pattern}},
        "$schema": {"properties": {"y": {"$schema": "http://json-schema.org/draft-07/schema#", "pattern": pattern}}},
    }[around]
    errors = errors_in(schema, {"y": text, text: 1}, most=5)
    assert bool(errors) is (around != "patternProperties")


def test_a_schema_is_checked_in_bounded_steps() -> None:
    assert problem_of({"type": "object", "properties": {f"p{n}": {"type": "string"} for n in range(300)}}) is None
    assert problem_of({"type": 5}) is not None
    with pytest.raises(Unchecked, match="takes more than"):
        problem_of({"allOf": [{"type": "string"}] * 100_000})


values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-2, 2) | st.text("ab", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyz"), inner, max_size=3),
    max_leaves=8,
)
schemas = st.recursive(
    st.booleans()
    | st.fixed_dictionaries({}, optional={
        "type": st.sampled_from(["string", "integer", "number", "object", "array", "null", "boolean"]),
        "enum": st.lists(values, min_size=1, max_size=3), "const": values,
        "pattern": st.sampled_from(["^a", "b$", "a+b"]),
        "uniqueItems": st.booleans(), "minLength": st.integers(0, 2), "maximum": st.integers(-2, 3),
        "required": st.lists(st.sampled_from("xyz"), unique=True), "minItems": st.integers(0, 2),
    }),
    lambda inner: st.fixed_dictionaries({}, optional={
        "properties": st.dictionaries(st.sampled_from("xyz"), inner, max_size=3), "items": inner, "not": inner,
        "additionalProperties": inner, "patternProperties": st.dictionaries(st.sampled_from(["x", "^y"]), inner),
        "anyOf": st.lists(inner, min_size=1, max_size=2), "oneOf": st.lists(inner, min_size=1, max_size=2),
        "contains": inner, "propertyNames": inner, "if": inner, "then": inner,
    }),
    max_leaves=6,
)  # fmt: skip


@given(schemas, values)
@examples(300)
def test_whatever_it_can_check_it_finds_as_the_library_does(schema: Any, value: Any) -> None:
    plain = Draft202012Validator(schema)
    assert bool(errors_in(schema, value, most=1)) is not plain.is_valid(value)


def test_an_edit_of_one_argument_is_not_refused_for_the_pattern_of_another() -> None:
    """The value that cannot be checked is the model's own, and a person saw it."""
    schema = {"type": "object", "properties": {"slug": {"pattern": "^(?!-)"}, "text": {"type": "string"}}}
    request = ApprovalRequest(tool_call_id="1", tool_name="t", args={"slug": "a", "text": "b"}, schema=schema)
    assert fitting(request, {"slug": "a", "text": "c"}) == {"slug": "a", "text": "c"}
    with pytest.raises(EditRefused, match="is not checked: negative lookahead"):
        fitting(request, {"slug": "b", "text": "b"})
    with pytest.raises(EditRefused, match="text: should be of type string"):
        fitting(request, {"slug": "a", "text": 5})
    other = {**schema, "properties": {**schema["properties"], "text": {"$ref": "#/properties/slug"}}}
    with pytest.raises(EditRefused, match="is not checked"):
        fitting(request.changed_to(schema=other), {"slug": "a", "text": "-c"})


@table(
    "schema",
    [
        {"if": {"required": ["a"]}, "then": {"required": ["b"]}},
        {"allOf": [{"required": ["b"]}]},
        {"$defs": {"d": {"required": ["b"]}}, "$ref": "#/$defs/d"},
        {"dependentSchemas": {"a": {"required": ["b"]}}},
        {"dependentRequired": {"a": ["b"]}},
        {"allOf": [{"properties": {"b": {}}, "additionalProperties": False}]},
        {"required": ["b"]},
    ],
)
def test_what_a_schema_inside_the_schema_needs_counts_too(schema: dict[str, Any]) -> None:
    request = ApprovalRequest(
        tool_call_id="1", tool_name="t", args={}, schema={"properties": {"a": {}, "b": {}}, **schema}
    )
    with pytest.raises(EditRefused):
        fitting(request, {"a": 1})


@given(schemas, st.dictionaries(st.sampled_from("xyz"), values, max_size=3))
@examples(100)
def test_an_accepted_edit_fits_the_schema(schema: Any, args: dict[str, Any]) -> None:
    whole: dict[str, Any] = {"properties": {"x": {}, "y": {}, "z": {}}, "allOf": [schema]}
    request = ApprovalRequest(tool_call_id="1", tool_name="t", args={}, schema=whole)
    with suppress(EditRefused):
        fitting(request, args)
        assert Draft202012Validator(whole).is_valid(args)
