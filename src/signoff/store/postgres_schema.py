"""Create and migrate the tables in a PostgreSQL schema."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast
from zlib import crc32

from signoff.store import migration_list
from signoff.store.data_migration import carry, refuse_while_used
from signoff.store.postgres_connection import Address, Writing
from signoff.store.postgres_pipeline import PostgresConnection, query
from signoff.store.queries import Queries, told
from signoff.store.sql import Sql

if TYPE_CHECKING:
    from typing import LiteralString


def ensure(connection: PostgresConnection, address: Address) -> None:
    """Check that the schema has the version this program knows, and create the tables if it is empty.

    Raises `SchemaError` for an older or newer one. Other processes may be using an older schema, so it is upgraded only
    on request.
    """
    known = migration_list.latest("postgres")
    version = version_of(connection, address)
    migration_list.refuse_newer(version, known, str(address))
    if version:
        migration_list.refuse_older(version, known, str(address))
    else:
        bring_up_to_date(connection, address)


def version_of(connection: PostgresConnection, address: Address) -> int:
    """The schema version; 0 if there are no tables yet."""
    row = connection.execute("select to_regclass(%s)", (f"{address.schema}.schema_version",)).fetchone()
    if row is None or row[0] is None:
        return 0
    [(version,)] = connection.line.ask(query(_sql(migration_list.VERSION, address)))
    return version


def bring_up_to_date(connection: PostgresConnection, address: Address) -> list[str]:
    """Apply all missing migrations in one transaction, under an advisory lock. Returns what was done."""
    done: list[str] = []
    with connection.transaction():
        connection.execute("select pg_advisory_xact_lock(%s)", (crc32(f"signoff {address.schema}".encode()),))
        # Check first: the owner of the schema need not have the permission to create one.
        found = connection.execute(
            "select 1 from information_schema.schemata where schema_name = %s", (address.schema_name,)
        ).fetchone()
        if found is None:
            connection.execute(cast("LiteralString", f"create schema if not exists {address.schema}"))
        version = version_of(connection, address)
        wire, queries = Writing(connection, holds=False), Queries("postgres", address.schema)
        if 0 < version < migration_list.latest("postgres"):
            # Every writer starts by locking a row of this table, so from here on no write is in progress.
            connection.line.ask(query(_sql("lock table {s}chain in access exclusive mode", address)))
            refuse_while_used(Sql(wire, queries), str(address), datetime.now(UTC))
        connection.line.ask(query(_sql(migration_list.TABLE, address)))
        for step in migration_list.missing("postgres", version, address.schema):
            for statement in step.statements:
                connection.line.ask(query(statement))
            now = datetime.now(UTC).isoformat(timespec="seconds")
            connection.line.ask(query(_sql(migration_list.APPLIED, address), (step.number, step.name, now)))
            done.append(step.name)
        carry(version, wire, queries)
    return done


def _sql(text: str, address: Address) -> str:
    return told(text, "postgres", address.schema)
