"""Create the tables in a PostgreSQL schema."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast
from zlib import crc32

from signoff.store import schema
from signoff.store.postgres_connection import Address
from signoff.store.postgres_pipeline import PostgresConnection, query

if TYPE_CHECKING:
    from typing import LiteralString


def ensure(connection: PostgresConnection, address: Address) -> None:
    """Check that the schema has the version this program knows, and create the tables if it is empty.

    Raises `SchemaError` for another version.
    """
    schema.refuse_other(versions_of(connection, address) or _create_tables(connection, address), str(address))


def versions_of(connection: PostgresConnection, address: Address) -> schema.Versions:
    """The schema versions; none if there are no tables yet."""
    row = connection.execute("select to_regclass(%s)", (f"{address.schema}.schema_version",)).fetchone()
    if row is None or row[0] is None:
        return ()
    return [(number, name) for number, name in connection.line.ask(query(address.dialect[schema.VERSIONS]))]


def _create_tables(connection: PostgresConnection, address: Address) -> schema.Versions:
    """Create the tables in one transaction, under an advisory lock, unless another process has.

    Returns the versions that there are now.
    """
    with connection.transaction():
        connection.execute("select pg_advisory_xact_lock(%s)", (crc32(f"signoff {address.schema}".encode()),))
        # Check first: the owner of the schema need not have the permission to create one.
        found = connection.execute(
            "select 1 from information_schema.schemata where schema_name = %s", (address.schema_name,)
        ).fetchone()
        if found is None:
            connection.execute(cast("LiteralString", f"create schema if not exists {address.schema}"))
        if not versions_of(connection, address):
            for statement in schema.statements(address.dialect):
                connection.line.ask(query(statement))
            now = datetime.now(UTC).isoformat(timespec="seconds")
            connection.line.ask(query(address.dialect[schema.APPLIED], (schema.VERSION, schema.NAME, now)))
    return versions_of(connection, address)
