"""The numbered schema migrations of the databases. There are no downgrades."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from signoff.errors import SchemaError
from signoff.store.queries import Dialect, told

DIRECTORY = Path(__file__).parent / "migrations"
_NOTE = re.compile(r"^\s*--.*$", re.MULTILINE)

TABLE = (
    "create table if not exists {s}schema_version "
    "(number integer primary key, name text not null, applied_at text not null)"
)
APPLIED = "insert into {s}schema_version (number, name, applied_at) values (?, ?, ?)"
VERSION = "select coalesce(max(number), 0) from {s}schema_version"


@dataclass(frozen=True, slots=True)
class Migration:
    """One migration, as a list of statements."""

    number: int
    name: str
    """The name of its file: `0001_first`."""
    statements: tuple[str, ...]


def migrations(dialect: Dialect, schema: str = "") -> Sequence[Migration]:
    """All migrations, in order."""
    return [_migration(path, dialect, schema) for path in sorted(DIRECTORY.glob(f"*.{dialect}.sql"))]


def latest(dialect: Dialect) -> int:
    """The schema version that this program knows."""
    return max(int(path.name[:4]) for path in DIRECTORY.glob(f"*.{dialect}.sql"))


def missing(dialect: Dialect, version: int, schema: str = "") -> Iterator[Migration]:
    """The migrations that a database of this version still needs."""
    return (step for step in migrations(dialect, schema) if step.number > version)


def refuse_newer(version: int, known: int, where: str) -> None:
    """Raise `SchemaError` if a newer signoff created this database."""
    if version > known:
        raise SchemaError(
            f"{where} was created by a newer signoff: its schema is version {version}, and this program knows {known}; "
            "upgrade signoff"
        )


def refuse_older(version: int, known: int, where: str) -> None:
    """Raise `SchemaError` if the database has to be upgraded first."""
    if version < known:
        raise SchemaError(
            f"{where} was created by an older signoff: its schema is version {version}, and this program needs {known}"
            "; stop what uses it and run: signoff db upgrade"
        )


def _migration(path: Path, dialect: Dialect, schema: str) -> Migration:
    text = told(_NOTE.sub("", path.read_text("utf-8")), dialect, schema)
    statements = (" ".join(part.split()) for part in text.split(";"))
    return Migration(
        number=int(path.name[:4]), name=path.name.split(".")[0], statements=tuple(one for one in statements if one)
    )
