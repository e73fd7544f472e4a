"""Fills a store as years would, with real rows: each made once, and copied inside the database."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from benchmarks.agents import agent, tools
from benchmarks.durable_trips import approve, ended
from benchmarks.policies import ASK_ALL
from benchmarks.script import PROMPT, Tally
from signoff import Signoff
from signoff.core.grant import Grant
from signoff.gate.resume import resume_run
from signoff.ports import Store, Transaction
from signoff.store.store_factory import open_store

UNIQUE = ("id", "run", "conversation", "call_key", "memory_key")
_SPREAD = 2_654_435_761
"""Times this, modulo 2**32, consecutive numbers lie all over the place, and no two are the same."""


@dataclass(frozen=True)
class Dialect:
    """What the two databases spell differently."""

    run: Callable[..., Sequence[Sequence[Any]]]
    """Runs SQL with values, and returns what it finds."""
    columns: str
    """Of a table, in order."""
    numbers: str
    """From one up to another."""
    name: str
    """Of the copy number `i`."""


async def with_requests(place: str, *, settled: int, pending: int) -> Store:
    """A store with that many requests in it, without what other tables say about them; those that wait came last."""
    store = open_store(place)
    done, waiting = await _originals(store)
    store.close()
    with _dialect(place) as dialect:
        _copy(dialect, "requests", done, 0, settled)
        _copy(dialect, "requests", waiting, settled, settled + pending)
    return open_store(place)


async def with_grants(place: str, grants: Sequence[Grant], *, copies: int) -> Store:
    """A store with those grants, and with copies of the first of them for other arguments."""
    store = open_store(place)

    def work(tx: Transaction) -> None:
        for grant in grants:
            tx.grants.add(grant)

    await store.write("grants", work)
    store.close()
    with _dialect(place) as dialect:
        _copy(dialect, "grants", grants[0].id, 0, copies)
    return open_store(place)


async def _originals(store: Store) -> tuple[str, str]:
    """A request that was answered and whose call ran, and one that waits."""
    gate = Signoff(ASK_ALL, wait="suspend", store=store)
    asking = agent(1, tools(Tally()), gate, suspends=True)
    run = await approve(gate, await asking.run(PROMPT))
    ended(await resume_run(asking, run))
    await asking.run(PROMPT)
    [waiting] = await gate.pending()
    [done] = await gate.broker.store.read(lambda tx: tx.requests.of(run=run))
    return done.id, waiting.id


@contextmanager
def _dialect(place: str) -> Generator[Dialect]:
    with _sqlite(place) if place.startswith("sqlite:") else _postgres(place) as dialect:
        yield dialect


@contextmanager
def _sqlite(place: str) -> Generator[Dialect]:
    with closing(sqlite3.connect(place.removeprefix("sqlite:"), isolation_level=None)) as connection:

        def run(sql: str, *values: Any) -> Sequence[Sequence[Any]]:
            return connection.execute(sql, values).fetchall()

        for setting in ("synchronous = off", "journal_mode = off", "cache_size = -200000"):
            run(f"pragma {setting}")
        run("begin")
        yield Dialect(
            run,
            columns="select name from pragma_table_info('{}')",
            numbers="(with recursive n (i) as (values ({}) union all select i + 1 from n where i + 1 < {}) "
            "select i from n)",
            name=f"printf('%08x', (i * {_SPREAD}) & 4294967295)",
        )
        run("commit")
        run("pragma journal_mode = wal")


@contextmanager
def _postgres(place: str) -> Generator[Dialect]:
    import psycopg

    with psycopg.connect(place, autocommit=True) as connection:

        def run(sql: str, *values: Any) -> Sequence[Sequence[Any]]:
            found = connection.execute(sql.replace("?", "%s").encode(), values)
            return found.fetchall() if found.description else []

        run("set synchronous_commit = off")
        yield Dialect(
            run,
            columns="select column_name from information_schema.columns "
            "where table_schema = current_schema and table_name = '{}' order by ordinal_position",
            numbers="(select generate_series({}::bigint, {}::bigint - 1) as i) as n",
            name=f"lpad(to_hex((i * {_SPREAD}) & 4294967295), 8, '0')",
        )
        run("vacuum analyze")


def _copy(dialect: Dialect, table: str, original: str, first: int, end: int) -> None:
    """Copies of one row, numbered from one number up to another."""
    if end <= first:
        return
    columns = [name for (name,) in dialect.run(dialect.columns.format(table)) if name != "nr"]
    named = ", ".join(columns)
    [row] = dialect.run(f"select {named} from {table} where id = ?", original)
    copied = [_copied(column, value, dialect.name) for column, value in zip(columns, row, strict=True)]
    values = [value for sql, value in zip(copied, row, strict=True) if sql == "?"]
    numbers = dialect.numbers.format(first, end)
    dialect.run(f"insert into {table} ({named}) select {', '.join(copied)} from {numbers}", *values)


def _copied(column: str, value: Any, name: str) -> str:
    """What a copy has in a column, in SQL; a question mark where it is the original's value."""
    if column in UNIQUE:
        return f"{name} || '-{column}'"
    if column == "opened_at":
        return f"{value} + i"
    return "null" if value is None else "?"
