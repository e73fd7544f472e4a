"""The tables of the databases. A store whose tables are of another version is refused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from signoff.errors import SchemaError
from signoff.store.dialect import Dialect

_HERE = Path(__file__).parent
_NOTE = re.compile(r"^\s*--.*$", re.MULTILINE)

VERSION, NAME = 1, "first release"
TABLE = "create table {s}schema_version (number integer primary key, name text not null, applied_at text not null)"
APPLIED = "insert into {s}schema_version (number, name, applied_at) values (?, ?, ?)"
VERSIONS = "select number, name from {s}schema_version order by number"

CREATED_LATER = "it is created with the first request"
Versions = Sequence[tuple[int, str]]
"""What a database says of its tables: number and name; empty if it has none yet."""


def statements(dialect: Dialect) -> Sequence[str]:
    """The statements that create the tables."""
    text = _NOTE.sub("", (_HERE / f"schema.{dialect.name}.sql").read_text("utf-8"))
    parts = (" ".join(part.split()) for part in text.split(";"))
    return [dialect[one] for one in (TABLE, *parts) if one]


def problem_of(versions: Versions, where: str) -> str:
    """Why this program cannot use tables of these versions; empty if it can."""
    if [tuple(one) for one in versions] == [(VERSION, NAME)]:
        return ""
    if not versions:
        return f"there is no store at {where}; {CREATED_LATER}"
    number, name = versions[-1]
    return (
        f"{where} was made by another version of signoff: its schema is {number} ({name}), and this program reads only "
        f"{VERSION} ({NAME}); use the version that made it, or name another store to start over"
    )


def refuse_other(versions: Versions, where: str) -> None:
    """Raise `SchemaError` if tables of these versions are not those of this program."""
    if problem := problem_of(versions, where):
        raise SchemaError(problem)
