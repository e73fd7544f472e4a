"""From what a user writes after `store:` to a store, or to an error that says how to write it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from tests import start

from signoff.errors import MissingExtra, StoreError, WrongUse
from signoff.store.memory_store import MemoryStore
from signoff.store.postgres import PostgresStore
from signoff.store.sqlite import SqliteStore
from signoff.store.store_factory import open_store
from signoff.store.store_urls import masked


def sqlite_at(url: str, root: Path) -> Path:
    store = open_store(url, root=root)
    assert isinstance(store, SqliteStore)
    store.close()
    return store.path


@pytest.mark.parametrize(
    ("url", "file"),
    [
        ("sqlite:.signoff/signoff.db", ".signoff/signoff.db"),
        ("sqlite:a b.db", "a b.db"),
        ("SQLite:x.db", "x.db"),
        ("sqlite:a%20b?mode=memory#x.db", "a%20b?mode=memory#x.db"),
        ("sqlite:../x.db", "../x.db"),
    ],
)
def test_a_relative_file_begins_at_the_root(url: str, file: str, tmp_path: Path) -> None:
    root = tmp_path / "project"
    root.mkdir()
    assert sqlite_at(url, root) == Path(os.path.abspath(root / file))


@pytest.mark.parametrize("slashes", ["/", "//", "///", "////"])
def test_an_absolute_file_is_where_it_says(slashes: str, tmp_path: Path) -> None:
    assert sqlite_at(f"sqlite:{slashes}{str(tmp_path)[1:]}/x.db", tmp_path / "elsewhere") == tmp_path / "x.db"


def test_memory_and_a_server() -> None:
    assert isinstance(open_store("memory:"), MemoryStore)
    for url in ("postgresql://ana@localhost/x", "postgres:///x"):
        store = open_store(url)  # connects when it is first used
        assert isinstance(store, PostgresStore)
        store.close()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "signoff.db",
        "mysql://x/y",
        "memory:x",
        "postgresql:x",
        "sqlite:",
        "sqlite:  ",
        "sqlite:a/",
        "sqlite::memory:",
    ],
)
def test_anything_else_says_how_to_write_it(url: str, tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match=r"sqlite:\.signoff/signoff\.db"):
        open_store(url, root=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_url_that_psycopg_does_not_understand() -> None:
    with pytest.raises(WrongUse, match=r"postgresql://user@host/database") as caught:
        open_store("postgresql://ana:geheim@host/x?no_such_option=1")
    assert "geheim" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ana:geheim@host/x", "postgresql://ana:…@host/x"),
        ("postgresql://ana:ge:h@im@host/x", "postgresql://ana:…@host/x"),
        ("postgresql://:geheim@host/x", "postgresql://:…@host/x"),
        (
            "postgresql://ana@host/x?password=geheim&connect_timeout=1",
            "postgresql://ana@host/x?password=…&connect_timeout=1",
        ),
        ("postgresql:///x?sslpassword=geheim", "postgresql:///x?sslpassword=…"),
        ("sqlite:a.db", "sqlite:a.db"),
    ],
)
def test_a_password_is_never_shown(url: str, shown: str) -> None:
    assert masked(url) == shown


async def test_a_server_that_is_not_there_is_told_at_once_and_without_the_password() -> None:
    store = PostgresStore("postgresql://ana:geheim@127.0.0.1:1/x")
    for attempt in (store.read(lambda tx: tx.record.head()), store.write("x", lambda tx: tx.record.head())):
        with pytest.raises(StoreError, match=r"postgresql://ana:…@127.0.0.1:1/x cannot be reached") as caught:
            await attempt
        assert "geheim" not in str(caught.value)
    store.close()


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("psycopg", "signoff.store.postgres"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"signoff\[postgres\]"):
        open_store("postgresql:///x")


def test_a_file_loads_no_driver_of_a_server(tmp_path: Path) -> None:
    script = (
        "import sys\n"
        "from signoff.store.store_factory import open_store\n"
        "open_store('sqlite:x.db', root=sys.argv[1]).close()\n"
        "print([name for name in ('psycopg', 'psycopg_pool', 'pydantic', 'pydantic_ai') if name in sys.modules])\n"
    )
    assert start.fresh(script, str(tmp_path)) == "[]\n"
