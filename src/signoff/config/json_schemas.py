"""JSON Schemas (draft 2020-12) of the files that people write, so that editors complete and check them.

They are generated from the formats that also parse the files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from signoff.config.script_file import SCRIPT
from signoff.config.settings import PROJECT
from signoff.config.worker_keys import WORKER
from signoff.policy.format import Format

_FORMATS: Mapping[str, tuple[str, Format[Any]]] = {
    "project": ("signoff.yaml", PROJECT),
    "worker": ("workers/NAME.yaml", WORKER),
    "script": ("a script", SCRIPT),
}
SCHEMAS = tuple(_FORMATS)
SCHEMA_FILES = {name: f"{'signoff' if name == 'project' else name}.schema.json" for name in SCHEMAS}
"""The file names that `signoff schema --write` uses."""


def schema_of(name: str) -> dict[str, Any]:
    """The schema of the `project` file, a `worker` file or a `script`: complete, without external references."""
    title, top = _FORMATS[name]
    named: dict[str, Any] = {}
    schema = _plain(top.schema, named)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **schema}
    return {**head, "$defs": named} if named else head


def _plain(value: Any, named: dict[str, Any]) -> Any:
    """Convert a schema to JSON values. Formats that it refers to are added to `named`, each once."""
    if isinstance(value, Format):
        return {"$ref": _reference(cast("Format[Any]", value), named)} if value.name else _plain(value.schema, named)
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value).items()
        return {key: _reference(item, named) if key == "$ref" else _plain(item, named) for key, item in items}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item, named) for item in cast("Sequence[Any]", value)]
    return value


def _reference(one: Format[Any], named: dict[str, Any]) -> str:
    if one.name not in named:
        named[one.name] = {}  # reserves its position, in the order of first use
        named[one.name] = _plain(one.schema, named)
    return f"#/$defs/{one.name}"
