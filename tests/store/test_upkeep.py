"""Stores of older and newer versions, backups, and what `signoff db check` finds."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sqlite3
import stat
from pathlib import Path
from typing import Any

import psycopg
import pytest
from tests.contracts import samples
from tests.contracts.samples import draft, request

from signoff.errors import SchemaError, StoreError, WrongUse
from signoff.store import migration_list, sqlite_file
from signoff.store.postgres import PostgresStore
from signoff.store.sqlite import SqliteStore
from signoff.store.store_factory import open_store
from signoff.store.upkeep import backup, check, upgrade

NEXT = """
alter table {s}runs add column colour text not null default 'green';
-- a note; with a semicolon
create table {s}more (a text);
"""
NAMES = ("0001_first", "0002_deliveries", "0003_typed", "0004_answers", "0005_access", "0006_aap", "0007_waiter")
STEPS = list(enumerate(NAMES, start=1))
"""What this version is made of."""


@pytest.fixture
def newer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """From here on the program knows one step more."""
    directory = tmp_path / "migrations"
    shutil.copytree(migration_list.DIRECTORY, directory)
    for dialect in ("sqlite", "postgres"):
        (directory / f"0008_colour.{dialect}.sql").write_text(NEXT, "utf-8")
    monkeypatch.setattr(migration_list, "DIRECTORY", directory)
    return directory


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


def backups(path: Path) -> list[Path]:
    return sorted(path.parent.glob(f"{path.name}.bak-*"))


# --- older and newer files ---


def test_an_older_file_is_brought_up_to_date_after_a_backup(path: Path, request: pytest.FixtureRequest) -> None:
    request.getfixturevalue("newer")
    assert seen(SqliteStore(path)) == (samples.request(1), 2)
    assert sql(path, "select number, name from schema_version") == [*STEPS, (8, "0008_colour")]
    [copy] = backups(path)
    assert re.fullmatch(r"signoff\.db\.bak-0007-\d{8}T\d{6}\.\d{6}Z", copy.name)
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert sql(copy, "select max(number) from schema_version") == [(7,)]
    assert sql(copy, "select id from requests") == [("r0001",)]
    SqliteStore(path).close()
    assert backups(path) == [copy], "once is enough"


def test_an_older_file_can_be_refused(path: Path, request: pytest.FixtureRequest) -> None:
    request.getfixturevalue("newer")
    before = path.read_bytes()
    with pytest.raises(
        SchemaError, match=rf"{path} was created by an older signoff.* version 7, .* needs 8.*signoff db upgrade"
    ):
        open_store(f"sqlite:{path}", upgrade="refuse")
    assert path.read_bytes() == before
    assert backups(path) == []
    done = upgrade(f"sqlite:{path}")
    assert done == [f"backup: {backups(path)[0]}", "0008_colour"]
    assert upgrade(f"sqlite:{path}") == []
    assert seen(open_store(f"sqlite:{path}", upgrade="refuse")) == (samples.request(1), 2)


def test_a_newer_file_is_refused(path: Path) -> None:
    sql(path, "insert into schema_version values (9, '0009_later', '2030-01-01')")
    for attempt in (lambda: SqliteStore(path), lambda: upgrade(f"sqlite:{path}")):
        with pytest.raises(
            SchemaError, match=rf"{path} was created by a newer signoff.* version 9, .* knows 7; upgrade"
        ):
            attempt()
    assert backups(path) == []


def test_a_step_that_fails_changes_nothing(path: Path, newer: Path) -> None:
    (newer / "0008_bad.sqlite.sql").write_text("create table good (a text); insert into nowhere values (1);", "utf-8")
    with pytest.raises(StoreError, match="nowhere"):
        SqliteStore(path)
    assert sql(path, "select max(number) from schema_version") == [(7,)]
    assert sql(path, "select count(*) from sqlite_master where name in ('more', 'good')") == [(0,)]
    assert backups(path) == []
    (newer / "0008_bad.sqlite.sql").unlink()
    assert seen(SqliteStore(path)) == (samples.request(1), 2)


# --- each version there was: `test_stores_of_0_1.py` holds one of version 2 ---


def test_the_steps_are_those_that_are_tested() -> None:
    assert [(step.number, step.name) for step in migration_list.migrations("sqlite")] == STEPS


def test_a_new_file_needs_no_upgrade_and_no_backup(tmp_path: Path) -> None:
    path = tmp_path / "new.db"
    assert upgrade(f"sqlite:{path}") == [name for _, name in STEPS]
    assert backups(path) == []
    open_store(f"sqlite:{tmp_path / 'other.db'}", upgrade="refuse").close()


def test_both_databases_have_the_same_steps() -> None:
    names = {dialect: [step.name for step in migration_list.migrations(dialect)] for dialect in ("sqlite", "postgres")}
    assert names["sqlite"] == names["postgres"]
    assert [step.number for step in migration_list.migrations("sqlite")] == list(range(1, len(names["sqlite"]) + 1))


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


def test_check_finds_another_version(checked: Path, request: pytest.FixtureRequest) -> None:
    request.getfixturevalue("newer")
    [problem] = check(f"sqlite:{checked}")
    assert "version 7" in problem and "signoff db upgrade" in problem


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


def test_an_older_schema_on_a_server_waits_for_the_command(server: str, request: pytest.FixtureRequest) -> None:
    request.getfixturevalue("newer")
    store = PostgresStore(server)
    for attempt in (store.read(lambda tx: tx.record.head()), store.write("x", lambda tx: tx.record.head())):
        with pytest.raises(SchemaError, match=r"older signoff.* version 7, .* needs 8.*signoff db upgrade"):
            asyncio.run(attempt)
    store.close()
    assert "signoff db upgrade" in check(server)[0]
    assert upgrade(server) == ["0008_colour"]
    assert upgrade(server) == []
    assert seen(PostgresStore(server)) == (samples.request(1), 2)
    assert ask(server, "select number, name from schema_version order by 1") == [*STEPS, (8, "0008_colour")]


def test_a_newer_schema_on_a_server_is_refused(server: str) -> None:
    assert check(server) == []
    ask(server, "insert into schema_version values (9, '0009_later', '2030-01-01')")
    with pytest.raises(SchemaError, match="newer signoff"):
        seen(PostgresStore(server))
    with pytest.raises(SchemaError, match="newer signoff"):
        upgrade(server)
    assert "version 9" in check(server)[0]


def test_a_step_that_fails_on_a_server_changes_nothing(server: str, newer: Path) -> None:
    (newer / "0008_bad.postgres.sql").write_text(
        "create table {s}good (a text); insert into {s}nowhere values (1);", "utf-8"
    )
    with pytest.raises(StoreError, match="nowhere"):
        upgrade(server)
    assert ask(server, "select max(number) from schema_version") == [(7,)]
    assert ask(server, "select to_regclass('more'), to_regclass('good')") == [(None, None)]


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
    with pytest.raises(StoreError, match="cannot be reached"):
        upgrade(url)


@pytest.mark.parametrize("url", ["memory:", "mysql://x", "x"])
def test_what_does_not_last_needs_no_upkeep(url: str, tmp_path: Path) -> None:
    for attempt in (lambda: upgrade(url), lambda: check(url), lambda: backup(url, tmp_path / "x")):
        with pytest.raises(WrongUse, match="names no store that lasts"):
            attempt()


def test_the_steps_are_told_apart_by_their_notes() -> None:
    [first, *_] = migration_list.migrations("sqlite")
    assert all(not statement.startswith("--") and "--" not in statement for statement in first.statements)
    assert sqlite_file.beside(Path("a/b.db"), 3).name.startswith("b.db.bak-0003-")
