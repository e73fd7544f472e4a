"""What a careful user writes by hand to make an approval durable: one table, a row for a run, three commits a trip."""

from __future__ import annotations

import sqlite3
import time
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from psycopg_pool import AsyncConnectionPool

TABLE = """create table paused (id text primary key, status text not null, asked_at double precision not null,
messages {bytes} not null, requests {bytes} not null, answers {bytes}, output text)"""
INDEX = "create index paused_waiting on paused (asked_at) where status = 'waiting'"
PAUSE = "insert into paused (id, status, asked_at, messages, requests) values (?, 'waiting', ?, ?, ?)"
ANSWER = "update paused set status = 'answered', answers = ? where id = ? and status = 'waiting'"
LOAD = "select messages, answers from paused where id = ?"
FINISH = "update paused set status = 'done', messages = ?, output = ? where id = ?"


class Rows(Protocol):
    """Each method but `load` is one commit."""

    async def pause(self, run: str, messages: bytes, requests: bytes) -> None: ...

    async def answer(self, run: str, answers: bytes) -> None: ...

    async def load(self, run: str) -> tuple[bytes, bytes]: ...

    async def finish(self, run: str, messages: bytes, output: str) -> None: ...

    async def close(self) -> None: ...


class SqliteRows:
    """On the event loop itself, which is as fast as it gets. One connection asks, the other answers and goes on."""

    def __init__(self, path: str) -> None:
        self._asks, self._answers = _connection(path), _connection(path)
        self._asks.execute(TABLE.format(bytes="blob"))
        self._asks.execute(INDEX)

    async def pause(self, run: str, messages: bytes, requests: bytes) -> None:
        self._asks.execute(PAUSE, (run, time.time(), messages, requests))

    async def answer(self, run: str, answers: bytes) -> None:
        assert self._answers.execute(ANSWER, (answers, run)).rowcount == 1

    async def load(self, run: str) -> tuple[bytes, bytes]:
        return self._answers.execute(LOAD, (run,)).fetchone()

    async def finish(self, run: str, messages: bytes, output: str) -> None:
        self._answers.execute(FINISH, (messages, output, run))

    async def close(self) -> None:
        self._asks.close()
        self._answers.close()


def _connection(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = full")
    return connection


class PostgresRows:
    """Over a pool of connections, without waiting for one."""

    def __init__(self, pool: AsyncConnectionPool[Any]) -> None:
        self._pool = pool

    @classmethod
    async def open(cls, url: str, connections: int) -> PostgresRows:
        from psycopg_pool import AsyncConnectionPool

        pool = AsyncConnectionPool(
            url, min_size=connections, max_size=connections, open=False, kwargs={"autocommit": True}
        )
        await pool.open(wait=True)
        rows = cls(pool)
        await rows._run(TABLE.format(bytes="bytea"))
        await rows._run(INDEX)
        return rows

    async def _run(self, sql: str, *values: object) -> int:
        async with self._pool.connection() as connection:
            return (await connection.execute(sql.replace("?", "%s").encode(), values)).rowcount

    async def pause(self, run: str, messages: bytes, requests: bytes) -> None:
        await self._run(PAUSE, run, time.time(), messages, requests)

    async def answer(self, run: str, answers: bytes) -> None:
        assert await self._run(ANSWER, answers, run) == 1

    async def load(self, run: str) -> tuple[bytes, bytes]:
        async with self._pool.connection() as connection:
            found = await (await connection.execute(LOAD.replace("?", "%s").encode(), (run,))).fetchone()
        assert found is not None
        return found[0], found[1]

    async def finish(self, run: str, messages: bytes, output: str) -> None:
        await self._run(FINISH, messages, output, run)

    async def close(self) -> None:
        await self._pool.close()
