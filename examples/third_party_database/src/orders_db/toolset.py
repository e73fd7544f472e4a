"""The toolset: one tool, `run_sql`. What a statement does is found by parsing it, in the policy that goes with it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset

from signoff.toolsets import ToolsetContext, with_approval


class DatabaseConfig(BaseModel):
    """What the project's file may say under `config`."""

    dsn: str = Field(pattern=r"^(sqlite:.+|postgres(ql)?://.+)$")
    """`sqlite:FILE`, from the project's directory, or `postgresql://…`."""
    readonly: bool = False
    """Refuse whatever is not known to only read."""
    max_rows: int = Field(default=100, ge=1)


def toolset(
    config: DatabaseConfig, context: ToolsetContext | None = None, id: str = "orders_db"
) -> AbstractToolset[Any]:
    """What the entry point stands for: the tools, and the policy that belongs to them."""
    directory = (context.workspace if context is not None else None) or "."
    database = DatabaseToolset(config, directory, id=id)
    return with_approval(database, rules(config, database.dialect), name=id)


def rules(config: DatabaseConfig, dialect: str) -> list[dict[str, Any]]:
    """Reads run. The rest is asked about, unless the project's rules say otherwise; read-only, it is refused."""
    reads = {"allow": {"tool": "run_sql", "sql": {"is": "read-only", "dialect": dialect}}}
    if not config.readonly:
        return [reads]
    writes = {"tool": "run_sql", "sql": {"does": "writes", "dialect": dialect}}
    return [reads, {"deny": writes, "reason": "this database is read-only"}]


class DatabaseToolset(FunctionToolset[Any]):
    """`run_sql` on one database."""

    def __init__(self, config: DatabaseConfig, directory: str = ".", *, id: str = "orders_db") -> None:
        self.config = config
        self.directory = directory
        self.dialect = "sqlite" if config.dsn.startswith("sqlite:") else "postgres"
        super().__init__([self.run_sql], id=id)

    def run_sql(self, sql: str) -> str:
        """Run one SQL statement and return its rows as JSON.

        Args:
            sql: One statement.
        """
        try:
            with self._connected() as connection:
                cursor = connection.execute(sql)
                if cursor.description is None:
                    return json.dumps({"changed": cursor.rowcount})
                columns = [column[0] for column in cursor.description]
                return json.dumps({"columns": columns, "rows": cursor.fetchmany(self.config.max_rows)}, default=str)
        except Exception as error:  # whatever the database says is an answer to the model
            raise ToolFailed(f"the database refused: {error}") from error

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        """A connection and a transaction. Read-only, the database itself refuses what the parser let through."""
        if self.dialect == "sqlite":
            file = Path(self.directory, self.config.dsn.removeprefix("sqlite:")).resolve()
            address = f"{file.as_uri()}?mode={'ro' if self.config.readonly else 'rw'}"
            with closing(sqlite3.connect(address, uri=True)) as connection, connection:
                yield connection
            return
        import psycopg

        with psycopg.connect(self.config.dsn) as connection:
            connection.read_only = self.config.readonly
            yield connection
