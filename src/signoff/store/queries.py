"""Load the named queries of the `.sql` files in this directory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Literal

Dialect = Literal["sqlite", "postgres"]

_HERE = Path(__file__).parent
_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_VALUE = re.compile(re.escape("?"))
_NOTE = re.compile(r"^--.*$", re.MULTILINE)


class Queries(dict[str, str]):
    """All queries for one database, by name: `queries["inbox"]`."""

    def __init__(self, dialect: Dialect, schema: str = "") -> None:
        own = dict(_named(f"queries.{dialect}.sql"))
        whole = own.pop("whole_request")
        texts = dict(_named("queries.sql")) | own
        parts = {
            "{request}": whole,
            "{delivery}": texts.pop("whole_delivery"),
            "{chosen}": texts.pop("chosen_requests"),
        }
        for part, text in parts.items():
            texts = {name: one.replace(part, text) for name, one in texts.items()}
        super().__init__({name: told(text, dialect, schema) for name, text in texts.items()})


def told(text: str, dialect: Dialect, schema: str) -> str:
    """Adapt SQL from a file to a database: insert the schema, and number the placeholders for PostgreSQL."""
    text = text.replace("{s}", f"{schema}." if schema else "")
    if dialect == "sqlite":
        return text
    number = count(1)
    return _VALUE.sub(lambda _: f"${next(number)}", text)


def _named(file: str) -> Iterator[tuple[str, str]]:
    _, *parts = _NAME.split((_HERE / file).read_text("utf-8"))
    for name, text in zip(parts[::2], parts[1::2], strict=True):
        yield name, " ".join(_NOTE.sub("", text).split())
