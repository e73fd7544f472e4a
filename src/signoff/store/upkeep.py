"""Back up and check a store, for `signoff db`."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from signoff.errors import StoreError, WrongUse
from signoff.store import schema, sqlite_file
from signoff.store.store_factory import EXAMPLES
from signoff.store.store_urls import sqlite_path

if TYPE_CHECKING:
    from signoff.store.postgres_connection import Address
    from signoff.store.postgres_pipeline import PostgresConnection


def backup(url: str, to: str | os.PathLike[str], *, root: str | os.PathLike[str] = ".") -> Path:
    """Copy an SQLite store, also while it is in use. Returns the path of the copy, which is a store of its own."""
    if _is_postgres(url):
        raise WrongUse("PostgreSQL has its own way to back up: pg_dump --format=custom --schema=signoff DATABASE")
    copy = Path(os.path.abspath(to))
    path = _there(_file(url, root))
    with sqlite_file.told(path):
        sqlite_file.copy(path, copy)
    return copy


def check(url: str, *, root: str | os.PathLike[str] = ".") -> list[str]:
    """Return the problems of a store, one line each; empty if there are none.

    `signoff audit verify` checks the audit log.
    """
    try:
        if not _is_postgres(url):
            path = _there(_file(url, root))
            return [*_file_problems(path), *_content_problems(path)]
        with _postgres(url) as (connection, address):
            return list(_server_problems(connection, address))
    except StoreError as error:
        return [str(error)]


def _is_postgres(url: str) -> bool:
    kind = url.partition(":")[0].lower()
    if kind not in ("sqlite", "postgresql", "postgres"):
        raise WrongUse(f"this address names no store that lasts; write one of: {EXAMPLES}")
    return kind != "sqlite"


def _file(url: str, root: str | os.PathLike[str]) -> Path:
    return Path(os.path.abspath(sqlite_path(url, root)))


def _there(path: Path) -> Path:
    if not path.is_file():
        raise StoreError(f"there is no store at {path}; it is created with the first request")
    return path


def _file_problems(path: Path) -> Iterator[str]:
    for one in (path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm")):
        if one.exists() and (mode := stat.S_IMODE(one.stat().st_mode)) & 0o077:
            yield f"{one} can be read or written by others (mode {mode:04o}); run: chmod 600 {one}"
    if (mode := stat.S_IMODE(path.parent.stat().st_mode)) & 0o022 and not mode & stat.S_ISVTX:
        yield f"{path.parent} can be written by others (mode {mode:04o}); run: chmod 700 {path.parent}"


def _content_problems(path: Path) -> list[str]:
    with sqlite_file.told(path), sqlite_file.closing(sqlite_file.connect(path, reads_only=True)) as connection:
        return list(_problems_in(connection, path))


def _problems_in(connection: sqlite3.Connection, path: Path) -> Iterator[str]:
    versions = sqlite_file.versions_of(connection, path)
    if problem := schema.problem_of(versions, str(path)):
        yield problem
    for (problem,) in connection.execute("pragma integrity_check(20)"):
        if problem != "ok":
            yield f"{path} is damaged: {problem}; restore a backup"
    for table, row, parent, _ in connection.execute("pragma foreign_key_check").fetchmany(20):
        yield f"{path}: row {row} of {table} belongs to a row of {parent} that is not there; restore a backup"
    if versions:
        yield from _end_problems(connection, path)


def _end_problems(connection: sqlite3.Connection, path: Path) -> Iterator[str]:
    last = connection.execute("select seq, hash from events order by seq desc limit 1").fetchone()
    [end] = connection.execute("select seq, hash from chain").fetchall()
    yield from _mismatch(last, end, str(path))


def _server_problems(connection: PostgresConnection, address: Address) -> Iterator[str]:
    from signoff.store import postgres_schema
    from signoff.store.postgres_pipeline import query

    versions = postgres_schema.versions_of(connection, address)
    if problem := schema.problem_of(versions, str(address)):
        yield problem
    if versions:
        last = connection.line.ask(query(f"select seq, hash from {address.schema}.events order by seq desc limit 1"))
        [end] = connection.line.ask(query(f"select seq, hash from {address.schema}.chain"))
        yield from _mismatch(tuple(last[0]) if last else None, tuple(end), str(address))


def _mismatch(last: tuple[int, str] | None, end: tuple[int, str], where: str) -> Iterator[str]:
    if (last or (0, end[1])) != end:
        yield (
            f"{where}: the record ends with event {last[0] if last else 0}, but {end[0]} were written; "
            "run: signoff audit verify"
        )


@contextmanager
def _postgres(url: str) -> Generator[tuple[PostgresConnection, Address]]:
    from signoff.store.postgres_connection import Address, store_error
    from signoff.store.postgres_pipeline import psycopg

    address = Address(url)
    try:
        with address.connect() as connection:
            yield connection, address
    except psycopg.Error as error:
        raise store_error(error, address) from error
