"""Stores of other versions, backups, and what `signoff db check` finds."""

from __future__ import annotations

import asyncio
import os
import re
import sqlite3
import stat
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.contracts import samples
from tests.contracts.samples import draft, request

from signoff.errors import SchemaError, StoreError, WrongUse
from signoff.store import schema
from signoff.store.dialect import SQLITE, Dialect, postgres
from signoff.store.postgres import PostgresStore
from signoff.store.sqlite import SqliteStore
from signoff.store.upkeep import backup, check

OTHERS = {
    "of 0.1": [(1, "0001_first"), (2, "0002_deliveries")],
    "of before that": [(1, "0001_first")],
    "of the last version before the first release": [(1, "0001_first"), (7, "0007_waiter")],
    "of a later release": [(1, "first release"), (2, "second release")],
}
"""Versions of tables that this program does not read."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with something in it, made by this version."""
    path = tmp_path / "signoff.db"
    fill(SqliteStore(path))
    return path


def fill(store: Any) -> None:
    def work(tx: Any) -> None:
        tx.requests.add(request(1))
        tx.record.append([draft(1), draft(2)])

    asyncio.run(store.write("fill", work))
    store.close()


def seen(store: Any) -> tuple[Any, int]:
    try:
        return asyncio.run(store.read(lambda tx: (tx.requests.get("r0001"), len(tx.record.entries()))))
    finally:
        store.close()


def sql(path: Path, statement: str) -> list[Any]:
    connection = sqlite3.connect(path)
    rows = connection.execute(statement).fetchall()
    connection.commit()
    connection.close()
    return rows


# --- other versions ---


@pytest.mark.parametrize("versions", OTHERS.values(), ids=OTHERS)
def test_a_file_of_another_version_is_refused_and_left_as_it_is(path: Path, versions: list[tuple[int, str]]) -> None:
    sql(path, "delete from schema_version")
    for number, name in versions:
        sql(path, f"insert into schema_version values ({number}, '{name}', '2030-01-01')")
    before, (number, name) = path.read_bytes(), versions[-1]
    why = rf"{path} was made by another version of signoff: its schema is {number} \({name}\), .* 1 \(first release\)"
    with pytest.raises(SchemaError, match=why + "; use the version that made it, or name another store"):
        SqliteStore(path)
    assert [problem for problem in check(f"sqlite:{path}") if re.match(why, problem)]
    assert path.read_bytes() == before


def test_two_who_create_a_file_at_once_create_it_once(tmp_path: Path) -> None:
    async def both() -> None:
        stores = await asyncio.gather(*(asyncio.to_thread(SqliteStore, tmp_path / "new.db") for _ in range(4)))
        for store in stores:
            store.close()

    asyncio.run(both())
    assert sql(tmp_path / "new.db", "select number, name from schema_version") == [(1, "first release")]


def test_both_databases_have_the_same_tables_with_the_same_columns() -> None:
    def tables(dialect: Dialect) -> dict[str, list[str]]:
        found = {}
        for statement in schema.statements(dialect):
            if made := re.match(r"create table (?:s\.)?(\w+) \((.*)\)", statement):
                found[made[1]] = re.findall(r"(?:^|, )(\w+)(?= (?:text|integer|bigint|blob|bytea)\b)", made[2].strip())
        return found

    ours, servers = tables(SQLITE), tables(postgres("s"))
    assert servers.pop("chain") == [*ours.pop("chain"), "writes"]
    assert len(ours) > 20 and ours == servers


# --- backups ---


def test_a_backup_is_a_store_of_its_own(path: Path, tmp_path: Path) -> None:
    store = SqliteStore(path)
    asyncio.run(store.write("more", lambda tx: tx.record.append([draft(3)])))  # in the log beside the file, at first
    copy = backup(f"sqlite:{path}", tmp_path / "copy.db")
    asyncio.run(store.write("more", lambda tx: tx.record.append([draft(4)])))
    store.close()
    assert copy == tmp_path / "copy.db"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert not list(tmp_path.glob("copy.db-*"))
    assert seen(SqliteStore(copy)) == (samples.request(1), 3)
    assert check(f"sqlite:{copy}") == []


def test_a_backup_overwrites_nothing(path: Path, tmp_path: Path) -> None:
    (tmp_path / "copy.db").write_text("mine", "utf-8")
    with pytest.raises(StoreError, match=r"copy\.db already exists"):
        backup(f"sqlite:{path}", tmp_path / "copy.db")
    assert (tmp_path / "copy.db").read_text("utf-8") == "mine"
    with pytest.raises(StoreError, match=r"cannot be written .*directory of yours"):
        backup(f"sqlite:{path}", tmp_path / "no such directory" / "copy.db")


def test_a_backup_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"there is no store at .*nothing\.db"):
        backup("sqlite:nothing.db", tmp_path / "copy.db", root=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_backup_of_a_file_that_is_none_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"nothing of the kind " * 500)
    with pytest.raises(StoreError, match="is not a database"):
        backup(f"sqlite:{tmp_path / 'x.db'}", tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()


# --- checks ---


@pytest.fixture
def checked(path: Path) -> Path:
    path.parent.chmod(0o700)
    assert check(f"sqlite:{path}") == []
    return path


def test_check_finds_open_doors(checked: Path) -> None:
    checked.chmod(0o644)
    [problem] = check(f"sqlite:{checked}")
    assert f"{checked} can be read or written by others (mode 0644); run: chmod 600 {checked}" == problem
    checked.chmod(0o600)
    checked.parent.chmod(0o777)
    [problem] = check(f"sqlite:{checked}")
    assert "chmod 700" in problem


def test_check_finds_damage(checked: Path) -> None:
    sql(checked, "drop index events_request")
    content = bytearray(checked.read_bytes())
    for page in range(4, 8):
        content[page * 4096 : page * 4096 + 64] = os.urandom(64)
    checked.write_bytes(content)
    assert any("damaged" in problem for problem in check(f"sqlite:{checked}"))


def test_check_finds_what_belongs_to_nothing(checked: Path) -> None:
    sql(checked, "insert into claims values ('nobody', 'p', 0, '{}')")
    [problem] = check(f"sqlite:{checked}")
    assert "of claims belongs to a row of requests that is not there" in problem


def test_check_finds_an_event_cut_off(checked: Path) -> None:
    sql(checked, "delete from events where seq = 2")
    [problem] = check(f"sqlite:{checked}")
    assert "the record ends with event 1, but 2 were written; run: signoff audit verify" in problem


def test_check_makes_nothing(tmp_path: Path) -> None:
    [problem] = check("sqlite:nothing.db", root=tmp_path)
    assert "there is no store at" in problem
    (tmp_path / "x.db").write_bytes(b"nothing of the kind " * 500)
    [*_, problem] = check("sqlite:x.db", root=tmp_path)
    assert "is not a database" in problem
    assert [one.name for one in tmp_path.iterdir()] == ["x.db"]


# --- on a server ---


@pytest.fixture
def server(postgres_url: str) -> str:
    fill(PostgresStore(postgres_url))
    return postgres_url


def ask(url: str, statement: str) -> list[Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


@pytest.mark.parametrize("versions", OTHERS.values(), ids=OTHERS)
def test_a_schema_of_another_version_on_a_server_is_refused(server: str, versions: list[tuple[int, str]]) -> None:
    assert check(server) == []
    ask(server, "delete from schema_version")
    for number, name in versions:
        ask(server, f"insert into schema_version values ({number}, '{name}', '2030-01-01')")
    store = PostgresStore(server)
    for attempt in (store.read(lambda tx: tx.record.head()), store.write("x", lambda tx: tx.record.head())):
        with pytest.raises(SchemaError, match="was made by another version of signoff"):
            asyncio.run(attempt)
    store.close()
    assert "was made by another version of signoff" in check(server)[0]
    assert ask(server, "select number, name from schema_version order by 1") == versions


def test_a_server_without_tables_has_no_store_yet(postgres_url: str) -> None:
    [problem] = check(postgres_url)
    assert problem.endswith("it is created with the first request")
    assert ask(postgres_url, "select to_regclass('schema_version')") == [(None,)]


def test_check_finds_an_event_cut_off_on_a_server(server: str) -> None:
    ask(server, "delete from events where seq = 2")
    [problem] = check(server)
    assert "the record ends with event 1, but 2 were written" in problem


def test_a_server_has_its_own_way_to_back_up(server: str, tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="pg_dump"):
        backup(server, tmp_path / "copy")


def test_a_server_that_is_not_there_is_a_problem() -> None:
    url = "postgresql://ana:geheim@127.0.0.1:1/x"
    [problem] = check(url)
    assert "cannot be reached" in problem
    assert "geheim" not in problem


@pytest.mark.parametrize("url", ["memory:", "mysql://x", "x"])
def test_what_does_not_last_needs_no_upkeep(url: str, tmp_path: Path) -> None:
    for attempt in (lambda: check(url), lambda: backup(url, tmp_path / "x")):
        with pytest.raises(WrongUse, match="names no store that lasts"):
            attempt()
