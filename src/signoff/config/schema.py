"""JSON Schemas (draft 2020-12) of the files people write, so that an editor completes and checks them."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

from signoff.config.worker_keys import DEFAULT_KEYS

SCHEMAS = ("project", "worker", "script")
SCHEMA_FILES = {name: f"{'signoff' if name == 'project' else name}.schema.json" for name in SCHEMAS}
"""What `signoff schema --write` calls each of them."""


def schema_of(name: str) -> dict[str, Any]:
    """The schema of the `project` file, a `worker` file or a `script`: whole, referring to nothing outside."""
    schema = _read(name)
    if name == "script":
        return schema
    shared = {**_read("rules"), **_read("worker_keys")}
    keys: dict[str, Any] = shared.pop("workerKeys")
    if name == "worker":
        schema["properties"] = keys
    else:
        defaults = schema["properties"]["defaults"]["properties"]["worker"]
        defaults["properties"] = {key: value for key, value in keys.items() if key in DEFAULT_KEYS}
    schema["$defs"] = {**schema["$defs"], **shared}
    return schema


def _read(name: str) -> dict[str, Any]:
    return json.loads((files("signoff.config") / "schemas" / f"{name}.json").read_text("utf-8"))
