"""PostgreSQL: many machines write to it one after the other, and it may be gone in the middle."""

from __future__ import annotations

import asyncio
import os
import secrets
import threading
from collections.abc import Callable, Iterator
from typing import Any, cast
from urllib.parse import quote

import psycopg
import pytest
from tests.contracts import samples
from tests.contracts.samples import draft, request
from tests.contracts.test_store_contract import chained
from tests.store.asked import sql_of
from tests.store.children import ended, forked, started
from tests.store.proxy import Proxy

from signoff.errors import StoreError, StoreUnavailable, WrongUse
from signoff.ports import Transaction
from signoff.store.dialect import postgres
from signoff.store.postgres import PostgresStore
from signoff.store.postgres_pipeline import query

SOON = 20.0


@pytest.fixture
def store(postgres_url: str) -> Iterator[PostgresStore]:
    made = PostgresStore(postgres_url)
    yield made
    made.close()


@pytest.fixture
def proxy(postgres_url: str) -> Iterator[Proxy]:
    made = Proxy(postgres_url)
    yield made
    made.close()


@pytest.fixture
def far(proxy: Proxy) -> Iterator[PostgresStore]:
    """A store behind the wire that can be cut. Its commits can be told from other messages."""
    made = PostgresStore(proxy.url, listen=False, patience=SOON)
    yield made
    proxy.cut()
    made.close()


def note(number: int) -> Callable[[Transaction], None]:
    return lambda tx: tx.record.append([draft(number)])


async def numbers(store: PostgresStore) -> list[str]:
    found = list(await store.read(lambda tx: tx.record.entries()))
    chained(found)
    return [entry.body for entry in found]


def ask(url: str, statement: str) -> list[Any]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []


def hang_up(url: str) -> None:
    """Have the server end every other connection to this schema."""
    schema = ask(url, "select current_schema()")[0][0]
    ask(
        url,
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'signoff'"
        f" and pid <> pg_backend_pid() and query like '%{schema}%'",
    )


# --- a server that is gone, and back ---


async def test_a_lost_connection_is_made_again(far: PostgresStore, proxy: Proxy) -> None:
    await far.write("note", note(1))
    assert await numbers(far) == ['{"n":1}']
    proxy.cut()
    await far.write("note", note(2))
    proxy.cut()
    assert await numbers(far) == ['{"n":1}', '{"n":2}']


async def test_a_connection_lost_in_the_middle_of_work_does_it_again_and_counts_once(
    far: PostgresStore, proxy: Proxy
) -> None:
    tries: list[int] = []

    def work(tx: Transaction) -> int:
        tx.record.append([draft(1)])
        tx.settings.put("a", "b")
        tries.append(len(tries))
        if len(tries) == 1:
            proxy.cut()
        return len(tx.record.entries())

    assert await far.write("work", work) == 1
    assert tries == [0, 1]
    assert await numbers(far) == ['{"n":1}']


@pytest.mark.parametrize("fate", ["lost", "unheard"])
@pytest.mark.parametrize("work", ["on the record", "off the record"])
async def test_a_commit_that_was_on_its_way_counts_once(far: PostgresStore, proxy: Proxy, fate: str, work: str) -> None:
    """Either it did not arrive, and is made again; or only its answer did not, and then it must not be."""
    tries: list[int] = []

    def counted(tx: Transaction) -> int:
        tries.append(len(tries))
        count = int(tx.settings.get("count") or 0) + 1
        tx.settings.put("count", str(count))
        if work == "on the record":
            tx.record.append([draft(count)])
        return count

    await far.write("note", note(0))
    proxy.on_commit = fate
    assert await far.write("count", counted) == 1
    assert proxy.on_commit == "", "the commit was cut off"
    assert len(tries) == (2 if fate == "lost" else 1)
    assert await far.read(lambda tx: tx.settings.get("count")) == "1"
    assert await far.write("count", counted) == 2
    assert await numbers(far) == ['{"n":0}', '{"n":1}', '{"n":2}'] if work == "on the record" else ['{"n":0}']


async def test_who_waits_gets_through_when_the_server_is_back(far: PostgresStore, proxy: Proxy) -> None:
    await far.write("note", note(1))
    proxy.shut()
    writing = asyncio.create_task(far.write("note", note(2)))
    reading = asyncio.create_task(far.read(lambda tx: len(tx.record.entries())))
    await asyncio.wait([writing, reading], timeout=0.1)
    assert not writing.done() and not reading.done()
    proxy.open()
    await asyncio.wait_for(writing, SOON)
    assert await asyncio.wait_for(reading, SOON) in (1, 2)
    assert await numbers(far) == ['{"n":1}', '{"n":2}']


async def refused(store: PostgresStore) -> str:
    with pytest.raises(StoreError, match="cannot be reached") as caught:
        await store.write("note", note(3))
    return str(caught.value)


async def test_a_server_that_stays_away_is_told_and_nothing_is_lost_for_it(proxy: Proxy) -> None:
    store = PostgresStore(proxy.url, listen=False, patience=0.2)
    await store.write("note", note(1))
    proxy.shut()
    store.later("note", note(2))
    with pytest.warns(RuntimeWarning, match="failed and will be retried: 1 x 'note'"):
        assert "retried for 0.2 s" in await refused(store)
    with pytest.raises(StoreError, match=r"cannot be reached .* retried for 0.2 s"):
        await store.read(lambda tx: tx.record.head())
    proxy.open()
    await store.write("note", note(4))
    assert await numbers(store) == ['{"n":1}', '{"n":2}', '{"n":4}']
    store.close()


async def test_a_server_that_ends_connections_is_forgiven(store: PostgresStore, postgres_url: str) -> None:
    """As it does when it is restarted."""
    await store.write("note", note(1))
    await numbers(store)
    hang_up(postgres_url)
    await store.write("note", note(2))
    hang_up(postgres_url)
    assert await numbers(store) == ['{"n":1}', '{"n":2}']


async def test_a_server_that_never_was_there_is_not_waited_for(proxy: Proxy) -> None:
    proxy.shut()
    store = PostgresStore(proxy.url)
    for attempt in (store.read(lambda tx: tx.record.head()), store.write("x", lambda tx: tx.record.head())):
        with pytest.raises(StoreError, match="cannot be reached"):
            await asyncio.wait_for(attempt, SOON)
    store.close()


async def test_a_database_that_is_not_there_is_not_waited_for(postgres_server: str) -> None:
    store = PostgresStore(postgres_server.replace("/postgres?", "/no_such_database?"))
    with pytest.raises(StoreError, match='database "no_such_database" does not exist'):
        await asyncio.wait_for(store.write("x", lambda tx: tx.record.head()), SOON)
    store.close()


@pytest.fixture
def limited(postgres_url: str) -> Iterator[str]:
    """The URL for a role that may have one connection."""
    name = f"limited_{os.getpid()}"
    with psycopg.connect(postgres_url, autocommit=True) as admin:
        admin.execute(f"create role {name} login superuser connection limit 1".encode())
        admin.execute(f"alter role {name} nosuperuser".encode())
        try:
            yield f"{postgres_url}&user={name}"
        finally:
            admin.execute(f"drop role {name}".encode())


async def test_a_role_without_another_connection_is_told_and_waited_for(limited: str) -> None:
    store = PostgresStore(limited, listen=False, patience=0.2)
    with psycopg.connect(limited):
        for attempt in (store.read(lambda tx: tx.record.head()), store.write("x", lambda tx: tx.record.head())):
            with pytest.raises(StoreUnavailable, match=r"takes no more connections \(.*for role.* uses up to 10"):
                await attempt
        patient = PostgresStore(limited, listen=False, patience=30)
        waits = asyncio.ensure_future(patient.read(lambda tx: tx.record.head()))
        await asyncio.sleep(0)
    with pytest.raises(StoreError, match=r"permission denied|lacks"):  # it got through
        await waits
    for one in (store, patient):
        one.close()


async def test_a_statement_that_was_cancelled_is_no_lock(store: PostgresStore) -> None:
    def slow(tx: Transaction) -> None:
        wire = cast("Any", tx.sql)._wire
        wire.rows("set local statement_timeout = '20ms'")
        wire.rows("select pg_sleep(20)")

    with pytest.raises(StoreUnavailable, match=r"ended a statement .*statement timeout"):
        await store.read(slow)


# --- one after the other ---


async def test_somebody_who_keeps_it_locked(store: PostgresStore, postgres_url: str) -> None:
    await store.write("note", note(1))
    impatient = PostgresStore(postgres_url, patience=0.05)
    with psycopg.connect(postgres_url) as other:
        other.execute("select * from chain for update")
        with pytest.raises(StoreError, match=r"another process has kept .* locked for too long"):
            await impatient.write("note", note(2))
        assert await numbers(impatient) == ['{"n":1}']
    await impatient.write("note", note(3))
    assert await numbers(store) == ['{"n":1}', '{"n":3}']
    impatient.close()


async def test_one_of_a_batch_that_raises_undoes_only_itself(store: PostgresStore) -> None:
    def bad(tx: Transaction) -> None:
        tx.record.append([draft(99, kind="bad")])
        tx.requests.add(request(99))
        raise WrongUse("oops")

    def refused(tx: Transaction) -> None:
        tx.record.append([draft(98, kind="bad")])
        tx.requests.add(request(1))

    def judged(tx: Transaction) -> None:
        assert tx.record.head()
        raise WrongUse("no")

    works: list[Any] = [lambda tx: tx.requests.add(request(1)), note(1), bad, note(2), refused, judged, note(3)]
    done = await asyncio.gather(*(store.write("work", work) for work in works), return_exceptions=True)
    assert [type(one) for one in done] == [
        *[type(None)] * 2,
        WrongUse,
        type(None),
        StoreError,
        WrongUse,
        type(None),
    ]
    assert await numbers(store) == ['{"n":1}', '{"n":2}', '{"n":3}']
    assert await store.read(lambda tx: tx.requests.get("r0099")) is None


async def test_work_that_only_judges_costs_no_second_try(store: PostgresStore) -> None:
    tries: list[str] = []

    def refuses(tx: Transaction) -> None:
        tries.append("refuses")
        assert tx.requests.get("r0001") is None
        raise WrongUse("no")

    def works(tx: Transaction) -> None:
        tries.append("works")
        tx.record.append([draft(1)])

    await store.write("warm up", note(0))
    tries.clear()
    done = await asyncio.gather(store.write("a", works), store.write("b", refuses), return_exceptions=True)
    assert [type(one) for one in done] == [type(None), WrongUse]
    assert sorted(tries) == ["refuses", "works"]


async def test_sixteen_at_once_take_few_commits(store: PostgresStore) -> None:
    await store.write("note", note(0))
    before = store.commits
    await asyncio.gather(*(store.write("note", note(number)) for number in range(1, 65)))
    assert store.commits - before <= 8
    assert len(await numbers(store)) == 65


WRITER = """
import asyncio, sys
from tests.contracts.samples import draft
from signoff.store.postgres import PostgresStore

def count(tx):
    number = int(tx.settings.get("count") or 0) + 1
    tx.settings.put("count", str(number))
    tx.record.append([draft(number, kind=sys.argv[2])])

async def main():
    store = PostgresStore(sys.argv[1])
    for _ in range(int(sys.argv[3])):
        await store.write("count", count)
    store.close()

asyncio.run(main())
"""


async def test_processes_write_one_after_the_other(postgres_url: str, store: PostgresStore) -> None:
    """They also make the tables together: whoever is first, there is one set."""
    children = [started(WRITER, postgres_url, f"child {number}", 40) for number in range(4)]
    for child in children:
        await asyncio.to_thread(ended, child)
    assert len(await numbers(store)) == 160
    assert await store.read(lambda tx: tx.settings.get("count")) == "160"


async def test_a_fork_uses_nothing_of_its_parent_and_may_connect_for_itself(
    postgres_url: str, store: PostgresStore
) -> None:
    await store.write("note", note(1))
    await numbers(store)

    def child() -> str:
        with pytest.raises(StoreUnavailable, match="open the store after the fork") as refused:
            asyncio.run(store.write("note", note(2)))
        store.close()
        own = PostgresStore(postgres_url)
        asyncio.run(own.write("note", note(3)))
        own.close()
        return str(refused.value)

    assert "this process was forked" in await asyncio.to_thread(forked, child)
    await store.write("note", note(4))
    assert sorted(await numbers(store)) == [f'{{"n":{number}}}' for number in (1, 3, 4)]


# --- hearing of changes ---


class Ear:
    """Counts what it is told."""

    def __init__(self) -> None:
        self._told = threading.Semaphore(0)

    def __call__(self) -> None:
        self._told.release()

    async def hears(self) -> None:
        assert await asyncio.to_thread(self._told.acquire, timeout=SOON)

    def forget(self) -> None:
        while self._told.acquire(blocking=False):
            pass


async def test_changes_are_found_where_they_cannot_be_announced(postgres_url: str, store: PostgresStore) -> None:
    deaf = PostgresStore(postgres_url, listen=False)
    ear = Ear()
    deaf.watch(ear)
    await ear.hears()  # that it looks now
    ear.forget()
    await store.write("set", lambda tx: tx.settings.put("a", "b"))
    await ear.hears()
    deaf.close()


async def test_a_listener_that_was_cut_off_hears_what_it_missed(store: PostgresStore, proxy: Proxy) -> None:
    listening = PostgresStore(proxy.url)
    ear = Ear()
    listening.watch(ear)
    await ear.hears()
    proxy.shut()
    await store.write("note", note(1))
    ear.forget()
    proxy.open()
    await ear.hears()
    ear.forget()
    await store.write("note", note(2))
    await ear.hears()
    listening.close()


# --- where it is ---


@pytest.fixture
def database(postgres_server: str) -> Iterator[str]:
    """A database of its own, without a schema in the URL."""
    name = f"d_{secrets.token_hex(6)}"
    ask(postgres_server, f"create database {name}")
    yield postgres_server.replace("/postgres?", f"/{name}?")
    ask(postgres_server, f"drop database {name} with (force)")


async def test_without_a_search_path_the_tables_keep_to_themselves(database: str) -> None:
    ask(database, "create table requests (mine text)")
    store = PostgresStore(database)
    await store.write("note", note(1))
    assert await numbers(store) == ['{"n":1}']
    store.close()
    assert ask(database, "select count(*) from signoff.events") == [(1,)]
    assert ask(
        database, "select table_schema from information_schema.tables where table_name = 'requests' order by 1"
    ) == [
        ("public",),
        ("signoff",),
    ]


async def test_who_may_not_make_the_schema_is_told_what_to_do(database: str) -> None:
    user = f"u_{secrets.token_hex(4)}"
    ask(database, f"create role {user} login")
    try:
        poor = database.replace("postgres@", f"{user}@")
        store = PostgresStore(poor)
        with pytest.raises(StoreError, match='create schema "signoff" authorization'):
            await store.write("note", note(1))
        ask(database, f"create schema signoff authorization {user}")
        await store.write("note", note(1))
        assert await numbers(store) == ['{"n":1}']
        store.close()
        ask(database, "drop schema signoff cascade")
    finally:
        ask(database, f"drop role {user}")


async def test_a_schema_may_have_any_name(postgres_server: str) -> None:
    name = f"Odd-{secrets.token_hex(4)}"
    ask(postgres_server, f'create schema "{name}"')
    options = quote(f'-csearch_path="{name}"', safe="")
    store = PostgresStore(f"{postgres_server}&options={options}")
    await store.write("note", note(1))
    assert await numbers(store) == ['{"n":1}']
    store.close()
    ask(postgres_server, f'drop schema "{name}" cascade')


def test_a_text_that_a_server_would_cut_short_is_refused() -> None:
    """No table sends one: it would be encoded."""
    with pytest.raises(StoreError, match="NUL"):
        query("select $1", ["a\0b"])


# --- how it is asked ---


INDICES = [
    ("request", "requests_id_key"),
    ("about", "requests_call"),
    ("open_requests", "requests_waiting"),
    ("inbox", "requests_waiting"),
    ("inbox_after", "requests_waiting"),
    ("requests_of_conversation", "requests_conversation"),
    ("requests_of_run", "requests_run"),
    ("asked_at_in_run", "requests_run"),
    ("asked_at_in_conversation", "requests_conversation"),
    ("requests_like", "requests_id_key"),
    ("runs_like", "runs_id_key"),
    ("due", "requests_deadline"),
    ("due", "requests_remind"),
    ("claimed", "requests_claimed"),
    ("grants_about", "grants_about"),
    ("runs_going", "runs_going"),
    ("segments", "segments_id_key"),
    ("recent", "Index Scan Backward using requests_pkey"),
    ("delivery", "deliveries_about"),
    ("live_deliveries", "deliveries_live"),
    ("deliveries_of_trail", "deliveries_trail"),
    ("live_deliveries_of_trail", "deliveries_live_of_trail"),
    ("last_deliveries", "deliveries_trail"),
    ("deliveries_of_request", "deliveries_about"),
    ("changed_trails", "deliveries_change"),
    ("entries", "events_pkey"),
    ("entries_of_request", "events_request"),
]


async def test_nothing_is_looked_for_one_by_one(store: PostgresStore, postgres_url: str) -> None:
    await store.write("add", lambda tx: tx.requests.add(samples.rich_request()))
    schema = ask(postgres_url, "select current_schema()")[0][0]
    plans: dict[str, str] = {}
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("set enable_seqscan = off")
        connection.execute("set plan_cache_mode = force_generic_plan")
        for name in dict(INDICES):
            lines = list[str]()
            for number, sql in enumerate(sql_of(name, postgres(schema))):
                count = sql.count("$")
                connection.execute(f"prepare {name}_{number} as {sql}".encode())
                values = f"({', '.join(['null'] * count)})" if count else ""
                lines += (row[0] for row in connection.execute(f"explain execute {name}_{number}{values}".encode()))
            plans[name] = "\n".join(lines)
    assert [(name, index, plans[name]) for name, index in INDICES if index not in plans[name]] == []
