"""Build the form for edited arguments from a tool's JSON Schema. What it cannot express is edited as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from signoff.core.visible_text import CLOSE, OPEN, is_clean, visible
from signoff.server.page_words import FIELD_LIMITS

DEEPEST = 4
"""Maximum nesting of objects; deeper ones are edited as JSON."""
MOST_FIELDS = 200
MASK = re.compile(rf"{OPEN}masked'* \d+: [^{OPEN}{CLOSE}]*{CLOSE}")
"""The mask of a secret; it may stay unchanged."""
_BLANKS = re.compile(r"[ \t\n]+")
"""Whitespace that an input shows correctly."""
LONG_LINE = 60
"""A text from this length on gets a multi-line input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormField:
    """One value in the form. Its texts are safe to show; `value` is the initial value, secrets masked."""

    path: str
    """Where the value goes, as a JSON list of names."""
    name: str
    label: str
    kind: str
    """`text`, `lines`, `number`, `integer`, `boolean`, `choice`, `list`, `object` or `json`."""
    value: str = ""
    """A text, JSON for `json`, or the selected choice."""
    about: str = ""
    required: bool = True
    given: bool = True
    """Whether the call has it; optional values may be left out."""
    nullable: bool = False
    is_null: bool = False
    hides: bool = False
    """Whether the value has characters that an input hides: it is edited as JSON, with escapes."""
    choices: tuple[tuple[str, str], ...] = ()
    """For `choice`: each as JSON, and as it is shown."""
    item: str = ""
    """For `list`: the kind of its items."""
    items: tuple[str, ...] = ()
    fields: tuple[FormField, ...] = ()
    """For `object`."""
    limits: Mapping[str, str] = field(default_factory=dict[str, str])
    """Limits of the value, in the words of JSON Schema: `minimum`, `maxLength`, `format` …"""


def form_fields(schema: Mapping[str, Any] | None, args: Mapping[str, Any]) -> tuple[FormField, ...]:
    """Return a field for each argument; empty if the schema does not help, so that the JSON is edited as a whole."""
    if not isinstance(schema, Mapping):
        return ()
    form = _SchemaReader(schema)
    try:
        fields = form.object_fields(schema, args, ())
    except RecursionError:
        return ()
    return fields if form.made <= MOST_FIELDS else ()


@dataclass(slots=True)
class _SchemaReader:
    """Reads one schema."""

    root: Mapping[str, Any]
    made: int = 0

    def object_fields(
        self, schema: Mapping[str, Any], value: Mapping[str, Any], path: tuple[str, ...]
    ) -> tuple[FormField, ...]:
        properties = _mapping(schema.get("properties"))
        required = schema.get("required")
        needed = set(map(str, cast("list[object]", required))) if isinstance(required, list) else set[str]()
        names = dict.fromkeys((*properties, *value))
        found: list[FormField] = []
        for name in names:
            if self.made > MOST_FIELDS:
                break
            found.append(self._field(_mapping(properties.get(name)), (*path, name), value, required=name in needed))
        return tuple(found)

    def _field(
        self, schema: Mapping[str, Any], path: tuple[str, ...], within: Mapping[str, Any], *, required: bool
    ) -> FormField:
        self.made += 1
        name = path[-1]
        given = name in within
        schema, nullable = self._plain(schema)
        value = within[name] if given else schema.get("default")
        common: dict[str, Any] = {
            "path": json.dumps(path),
            "name": name,
            "label": visible(name),
            "about": visible(_text(schema.get("description")) or _text(schema.get("title"))),
            "required": required,
            "given": given,
            "nullable": nullable,
            "is_null": nullable and value is None,
            "hides": _hides(value),
        }
        shape = _escaped(value) if common["hides"] else self._shape(schema, value, path)
        return FormField(**common, **shape)

    def _plain(self, schema: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
        """Return the schema with its reference resolved, and whether `null` is allowed, too."""
        nullable = False
        for _ in range(DEEPEST):
            if isinstance(reference := schema.get("$ref"), str):
                schema = {**self._referred(reference), **{key: one for key, one in schema.items() if key != "$ref"}}
                continue
            options = [_mapping(one) for one in _list(schema.get("anyOf") or schema.get("oneOf"))]
            rest = [one for one in options if one.get("type") != "null"]
            if len(rest) == 1 and len(rest) < len(options):
                about = {key: schema[key] for key in ("description", "title", "default") if key in schema}
                schema, nullable = {**rest[0], **about}, True
                continue
            kinds = _list(schema.get("type"))
            if len(kinds) == 2 and "null" in kinds:
                schema = {**schema, "type": next(one for one in kinds if one != "null")}
                nullable = True
            break
        return schema, nullable

    def _referred(self, reference: str) -> Mapping[str, Any]:
        found: object = self.root
        for part in reference.removeprefix("#/").split("/"):
            found = _mapping(found).get(part.replace("~1", "/").replace("~0", "~"))
        return _mapping(found)

    def _shape(self, schema: Mapping[str, Any], value: Any, path: tuple[str, ...]) -> dict[str, Any]:
        kind, options = schema.get("type"), _list(schema.get("enum"))
        whole: object = value
        if options:
            choices = tuple((json.dumps(one), visible(one if isinstance(one, str) else _json(one))) for one in options)
            shown = json.dumps(value, default=str) if value is not None else choices[0][0]
            known = shown in {one for one, _ in choices}
            return {"kind": "choice", "choices": choices, "value": shown} if known else _as_json(value)
        if kind == "boolean" and isinstance(value, bool | None):
            return {"kind": "boolean", "value": "true" if value else ""}
        if kind in ("integer", "number") and isinstance(value, int | float | None) and not isinstance(value, bool):
            return {"kind": kind, "value": "" if value is None else _json(value), "limits": _limits(schema)}
        if kind == "string" and isinstance(value, str | None):
            text = value or ""
            lines = "\n" in text or len(text) > LONG_LINE
            return {"kind": "lines" if lines else "text", "value": text, "limits": _limits(schema)}
        if kind == "object" and "properties" in schema and isinstance(value, Mapping | None) and len(path) < DEEPEST:
            return {"kind": "object", "fields": self.object_fields(schema, _mapping(whole), path)}
        if kind == "array" and isinstance(value, list | None):
            item = _text(_mapping(schema.get("items")).get("type"))
            inside = cast("list[object]", value or [])
            kinds: dict[str, tuple[type, ...]] = {"string": (str,), "integer": (int,), "number": (int, float)}
            if item in kinds and all(isinstance(one, kinds[item]) and not isinstance(one, bool) for one in inside):
                texts = tuple(one if isinstance(one, str) else _json(one) for one in inside)
                if not any("\n" in one for one in texts):
                    return {"kind": "list", "item": "text" if item == "string" else item, "items": texts}
        return _as_json(whole)


def _hides(value: object) -> bool:
    """Whether a text in it has characters that an input hides or changes: inputs turn CR into line breaks."""
    if isinstance(value, str):
        return not is_clean(_BLANKS.sub(".", MASK.sub("", value)))
    if isinstance(value, Mapping):
        return any(_hides(one) for pair in cast("Mapping[str, object]", value).items() for one in pair)
    return isinstance(value, list) and any(map(_hides, cast("list[object]", value)))


def _escaped(value: object) -> dict[str, Any]:
    """As JSON in ASCII: an input would hide characters, or reorder them (bidirectional text)."""
    return {"kind": "json", "value": json.dumps(value, indent=2, default=str)}


def _as_json(value: object) -> dict[str, Any]:
    return {"kind": "json", "value": json.dumps(value, ensure_ascii=False, indent=2, default=str)}


def _limits(schema: Mapping[str, Any]) -> dict[str, str]:
    found = ((name, schema.get(name)) for name in FIELD_LIMITS)
    return {name: visible(str(one)) for name, one in found if isinstance(one, int | float | str) and one != ""}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _list(value: object) -> Sequence[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else ()


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
