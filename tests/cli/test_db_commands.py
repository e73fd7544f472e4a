"""`signoff db upgrade`, `backup` and `check`."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

from tests.cli.desk import Desk, asks
from tests.cli.wording import Wording

from signoff.broker import Broker
from signoff.store.store_factory import open_store
from signoff.store.store_urls import masked

OF_0_1 = Path(__file__).parent.parent / "store/stores/0.1.sqlite.sql"
"""A store that signoff 0.1 wrote."""


def test_a_store_that_is_well(desk: Desk, wording: Wording) -> None:
    desk.open(asks())
    said = desk.run("db", "check")
    assert said.code == 0
    assert said.out == wording()
    assert desk.run("db", "check", "--json").data == {"store": f"sqlite:{desk.file}", "ok": True, "problems": []}


def test_what_is_wrong_is_told(desk: Desk, wording: Wording) -> None:
    desk.open(asks())
    desk.file.chmod(0o644)
    said = desk.run("db", "check")
    assert (said.code, said.out) == (1, "")
    assert said.err == wording()
    assert desk.run("db", "check", "--json").data["ok"] is False
    desk.file.write_bytes(b"nonsense" * 1000)
    assert desk.run("db", "check").err == wording()


def test_check_of_a_store_that_is_not_there_makes_none(desk: Desk, wording: Wording) -> None:
    said = desk.run("db", "check")
    assert said.code == 1
    assert said.err == wording()
    assert not desk.file.exists()


def test_a_backup_is_a_store_of_its_own(desk: Desk, wording: Wording) -> None:
    [one] = desk.open(asks())
    said = desk.run("db", "backup", "copy.db")
    assert said.code == 0
    assert said.out == wording()
    assert (desk.directory / "copy.db").stat().st_mode & 0o077 == 0
    assert one in desk.run("inbox", "--store", "sqlite:copy.db").out
    again = desk.run("db", "backup", "copy.db")
    assert again.code == 1
    assert again.err == wording()
    assert desk.run("db", "backup", "no/such/directory.db").code == 1
    assert desk.run("db", "backup", "x.db", "--store", "postgresql://u:secret@h/d").code == 2
    assert desk.run("db", "backup", "x.db", "--store", "sqlite:nowhere.db").code == 1


def test_upgrade(desk: Desk, wording: Wording) -> None:
    desk.open(asks())
    said = desk.run("db", "upgrade")
    assert said.code == 0
    assert said.out == wording()


def test_a_store_of_an_older_signoff_is_upgraded_and_keeps_what_waits(desk: Desk) -> None:
    desk.file.parent.mkdir(mode=0o700, exist_ok=True)
    with closing(sqlite3.connect(desk.file)) as connection:
        connection.executescript(OF_0_1.read_text("utf-8"))
        [(one,)] = connection.execute("select id from requests where title = 'pay(amount=5)'").fetchall()
    desk.file.chmod(0o600)
    assert "schema version 2" in desk.run("db", "check").err
    said = desk.run("db", "upgrade")
    assert said.code == 0
    assert "0003_typed" in said.out and f"backup: {desk.file}.bak-0002-" in said.out
    assert desk.run("db", "check").code == 0
    assert one in desk.run("inbox").out


def test_a_store_of_a_newer_signoff_is_refused(desk: Desk, wording: Wording) -> None:
    desk.open(asks())
    with sqlite3.connect(desk.file) as connection:
        connection.execute("insert into schema_version values (99, 'later', 'then')")
    connection.close()
    told = set[str]()
    for command in (["inbox"], ["approve", "x"], ["db", "upgrade"]):
        said = desk.run(*command)
        assert said.code == 1
        told.add(said.err)
    assert "".join(told) == wording(), "the same for each"


def test_passwords_are_not_shown(desk: Desk) -> None:
    for command in ("check", "upgrade"):
        said = desk.run("db", command, "--store", "postgresql://ops:hunter2@127.0.0.1:1/x?connect_timeout=1")
        assert said.code == 1
        assert "hunter2" not in said.out + said.err
    assert desk.run("db", "check", "--store", "memory:").code == 2


def test_everything_on_postgres(desk: Desk, postgres_url: str, wording: Wording) -> None:
    desk.monkeypatch.setenv("SIGNOFF_STORE", postgres_url)
    assert desk.run("inbox").out == wording(postgres=masked(postgres_url))
    store = open_store(postgres_url)

    async def ask() -> str:
        [opened] = await Broker(store).open([asks()])
        return opened.id

    one = asyncio.run(ask())
    store.close()
    assert one in desk.run("inbox").out
    assert desk.run("approve", one[:7], "--remember", "exact", "--yes").code == 0
    assert "settled: approved, by ana" in desk.run("show", one).out
    assert len(desk.run("grants", "list", "--json").data["grants"]) == 1
    assert desk.run("deny", one).code == 1
    assert desk.run("halt").code == 0
    assert desk.run("db", "check").code == 0
    assert desk.run("db", "upgrade").out.endswith(" is already up to date.\n")
