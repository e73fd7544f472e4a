"""`signoff db backup` and `check`."""

from __future__ import annotations

import asyncio
import sqlite3

from tests.cli.desk import Desk, asks
from tests.cli.wording import Wording

from signoff.broker import Broker
from signoff.store.store_factory import open_store
from signoff.store.store_urls import masked


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


def test_a_store_of_another_version_is_refused_and_left_as_it_is(desk: Desk, wording: Wording) -> None:
    desk.open(asks())
    with sqlite3.connect(desk.file) as connection:
        connection.execute("update schema_version set number = 2, name = '0002_deliveries'")
    connection.close()
    before, told = desk.file.read_bytes(), set[str]()
    for command in (["inbox"], ["approve", "x"], ["db", "check"]):
        said = desk.run(*command)
        assert said.code == 1
        told.add(said.err)
    assert "".join(told) == wording(), "the same for each"
    assert desk.file.read_bytes() == before


def test_passwords_are_not_shown(desk: Desk) -> None:
    said = desk.run("db", "check", "--store", "postgresql://ops:hunter2@127.0.0.1:1/x?connect_timeout=1")
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
