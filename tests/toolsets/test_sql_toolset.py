"""The SQL tools, on a real SQLite file and a real PostgreSQL server."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.models.test import TestModel
from tests import start

from signoff.core.verdict import Effect
from signoff.errors import WrongUse
from signoff.toolsets.builtin.sql.databases import DatabaseError, database
from signoff.toolsets.builtin.sql.sql_toolset import SqlToolset, sql_toolset
from signoff.workers.scripted_model import ScriptedModel

SLOW = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 10000000000) SELECT count(*) FROM n"
MADE = "CREATE TABLE t(a int, b text); CREATE INDEX i ON t(a); INSERT INTO t VALUES (1, 'x'), (2, NULL), (3, 'é')"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a b?.db"
    with closing(sqlite3.connect(path)) as db:
        db.executescript(MADE)
    return path


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:{request.getfixturevalue('file')}"
        return
    import psycopg

    address = request.getfixturevalue("postgres_url")
    with psycopg.connect(address, autocommit=True) as db:
        db.execute(MADE)
    yield address


def told(text: str) -> dict[str, Any]:
    return json.loads(text)


async def count(tools: SqlToolset) -> int:
    return told(await tools.query("SELECT count(*) FROM t"))["rows"][0][0]


async def test_query_returns_columns_and_rows(url: str) -> None:
    tools = sql_toolset(url)
    answer = told(await tools.query("SELECT a, b FROM t ORDER BY a"))
    assert answer == {"columns": ["a", "b"], "rows": [[1, "x"], [2, None], [3, "é"]], "truncated": False}


async def test_query_explains_a_change_without_making_it(url: str) -> None:
    tools = sql_toolset(url)
    assert told(await tools.query("EXPLAIN DELETE FROM t"))["rows"]
    assert await count(tools) == 3


async def test_rows_and_characters_are_limited(url: str) -> None:
    answer = told(await sql_toolset(url, max_rows=2).query("SELECT a FROM t ORDER BY a"))
    assert answer["rows"] == [[1], [2]] and answer["truncated"]
    wide = "SELECT a, " + " || ".join(["'0123456789'"] * 100) + " FROM t"
    text = await sql_toolset(url, max_chars=1_000).query(wide)
    assert len(text) <= 1_000 and told(text)["truncated"] and told(text)["rows"]
    with pytest.raises(ToolFailed, match="too many to show"):
        await sql_toolset(url, max_chars=300).query("SELECT " + "a AS a_rather_long_name, " * 50 + "a FROM t")


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM t",
        "SELECT 1; DELETE FROM t",
        "SELECT 1; SELECT 2",
        "SELECT f_write()",
        "",
        "DROP TABLE t",
        "nonsense",
    ],
)
async def test_query_refuses_whatever_is_no_read(url: str, sql: str) -> None:
    tools = sql_toolset(url)
    with pytest.raises(ToolFailed):
        await tools.query(sql)
    assert await count(tools) == 3


async def test_the_refusal_says_why_and_points_to_execute(file: Path) -> None:
    with pytest.raises(ToolFailed, match=r"`query` only reads: `DELETE` removes rows of `t`\. Use `execute`"):
        await sql_toolset(f"sqlite:{file}").query("DELETE FROM t")
    with pytest.raises(ToolFailed) as refused:
        await sql_toolset(f"sqlite:{file}", readonly=True).query("DELETE FROM t")
    assert "execute" not in str(refused.value)
    with pytest.raises(ToolFailed, match="send one at a time"):
        await sql_toolset(f"sqlite:{file}").query("SELECT 1; SELECT 2")
    with pytest.raises(ToolFailed, match="sqlite_schema"):
        await sql_toolset(f"sqlite:{file}").query(".tables")


async def test_execute_changes_and_says_how_many(url: str) -> None:
    tools = sql_toolset(url)
    assert told(await tools.execute("UPDATE t SET b = 'y' WHERE a > 1"))["rowcount"] == 2
    answer = told(await tools.execute("DELETE FROM t WHERE a > 1 RETURNING a"))
    assert sorted(answer["rows"]) == [[2], [3]]
    assert await count(tools) == 1


async def test_execute_takes_one_statement_and_undoes_what_fails(url: str) -> None:
    tools = sql_toolset(url)
    for sql in (
        "DELETE FROM t; DELETE FROM t",
        "DELETE FROM t; COMMIT; nonsense",
        "COMMIT",
        "BEGIN",
        "INSERT INTO t SELECT 7, 'z' UNION ALL SELECT 8, nowhere FROM t",
        "DELETE FROM t /* /* */; DELETE FROM t; -- */ */",
    ):
        with pytest.raises(ToolFailed):
            await tools.execute(sql)
    assert await count(tools) == 3


async def test_a_readonly_toolset_has_no_execute(url: str) -> None:
    model = TestModel(call_tools=[])
    agent = Agent(model, toolsets=[sql_toolset(url, readonly=True)])
    await agent.run("x")
    assert model.last_model_request_parameters is not None
    assert [tool.name for tool in model.last_model_request_parameters.function_tools] == ["query"]


async def test_an_agent_calls_it(file: Path) -> None:
    turns = [
        {"calls": [{"tool": "query", "args": {"sql": "SELECT count(*) AS n FROM t"}}]},
        {"calls": [{"tool": "query", "args": {"sql": "DELETE FROM t"}}]},
        {"say": "{{last}}"},
    ]
    result = await Agent(ScriptedModel(turns), toolsets=[sql_toolset(f"sqlite:{file}")]).run("x")
    assert "only reads" in result.output
    assert '"rows": [[3]]' in str(result.all_messages())


async def test_without_a_gate_it_asks_by_itself(file: Path) -> None:
    turns = [{"calls": [{"tool": "execute", "args": {"sql": "DELETE FROM t"}}]}, {"say": "{{last}}"}]
    tools = sql_toolset(f"sqlite:{file}")
    agent = Agent(ScriptedModel(turns), toolsets=[tools], output_type=[str, DeferredToolRequests])
    first = await agent.run("x")
    assert isinstance(first.output, DeferredToolRequests)
    assert await count(tools) == 3
    answers = DeferredToolResults(approvals={first.output.approvals[0].tool_call_id: True})
    await agent.run(message_history=first.all_messages(), deferred_tool_results=answers)
    assert await count(tools) == 0


# what it declares


def test_what_it_declares(url: str) -> None:
    tools = sql_toolset(url, id="orders")
    assert tools.id == "orders" and tools.dialect in ("sqlite", "postgres")
    read, write = {"sql": "SELECT * FROM t"}, {"sql": "DELETE FROM t"}
    unknown = {"sql": "SELECT f()"}
    assert tools.needs_approval("query", read, None).effect is Effect.ALLOW
    assert tools.needs_approval("execute", read, None).effect is Effect.ALLOW
    assert tools.needs_approval("query", write, None).effect is Effect.DENY
    assert tools.needs_approval("query", unknown, None).effect is Effect.ASK
    assert tools.needs_approval("execute", write, None).effect is Effect.ASK
    assert tools.needs_approval("other", read, None).effect is Effect.ASK
    assert tools.needs_approval("query", {}, None).effect is Effect.ASK
    assert sql_toolset(url, readonly=True).needs_approval("execute", write, None).effect is Effect.DENY
    assert tools.capability_labels("query", read, None) == ("data.read",)
    assert tools.capability_labels("execute", write, None) == ("data.write",)
    assert tools.capability_labels("query", {"sql": "SELECT f()"}, None) == ("data.write",)
    said = tools.describe_approval("execute", {"sql": "UPDATE t SET a = 1 WHERE b IN (SELECT b FROM u)"}, None)
    assert said == {"summary": "UPDATE t", "reason": "`UPDATE` changes rows of `t`"}
    assert tools.describe_approval("execute", {"sql": "'"}, None)["summary"] == "SQL that is not understood"


def test_a_wrong_url_and_wrong_limits_are_told() -> None:
    for wrong in ("mysql://x", "nothing", "sqlite:", "postgresql:x"):
        with pytest.raises(WrongUse):
            sql_toolset(wrong)
    with pytest.raises(WrongUse) as told:
        sql_toolset("oracle://me:secret@host/x")
    assert "secret" not in str(told.value)
    for limits in ({"max_rows": 0}, {"timeout": 0}, {"max_chars": 1}):
        with pytest.raises(WrongUse):
            sql_toolset("sqlite:x.db", **limits)


def test_the_missing_extra_is_named() -> None:
    program = (
        "import sys\n"
        "for name in [*sys.modules]:\n"
        "    if name.startswith(('psycopg', 'signoff.toolsets.builtin.sql')): del sys.modules[name]\n"
        "sys.modules['psycopg'] = None\n"
        "from signoff.toolsets.builtin.sql.sql_toolset import sql_toolset\n"
        "try: sql_toolset('postgresql://x/y')\n"
        "except Exception as error: sys.exit(0 if 'signoff[postgres]' in str(error) else 1)\n"
        "sys.exit(2)"
    )
    assert start.run([sys.executable, "-c", program]).returncode == 0


async def test_a_file_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    tools = sql_toolset(f"sqlite:{tmp_path / 'none.db'}")
    for tool, sql in ((tools.query, "SELECT 1"), (tools.execute, "CREATE TABLE t(a)")):
        with pytest.raises(ToolFailed):
            await tool(sql)
    assert not any(True for _ in os.scandir(tmp_path))


# what takes too long


async def test_a_statement_that_takes_too_long_is_stopped(url: str) -> None:
    began = time.monotonic()
    with pytest.raises(ToolFailed, match=r"longer than|timeout"):
        await sql_toolset(url, timeout=0.3).query(SLOW)
    assert time.monotonic() - began < 20


async def test_a_cancelled_call_stops_the_statement(url: str) -> None:
    tools = sql_toolset(url, timeout=60)
    began = time.monotonic()
    task = asyncio.create_task(tools.query(SLOW))
    await asyncio.wait([task], timeout=0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - began < 20
    assert await count(tools) == 3


# the connections, if the parser were wrong: called past it


def refused(url: str, sql: str) -> str:
    _, start = database(url)
    with pytest.raises(DatabaseError) as error:
        start(5).read(sql, 10)
    return str(error.value)


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM t",
        "INSERT INTO t VALUES (9, 'z')",
        "CREATE TABLE z(a)",
        "CREATE TEMP TABLE z(a)",
        "DROP TABLE t",
        "ATTACH '{there}/new.db' AS x",
        "VACUUM INTO '{there}/new.db'",
        "VACUUM",
        "PRAGMA writable_schema = 1",
        "PRAGMA writable_schema(1)",
        "PRAGMA user_version = 5",
        "PRAGMA query_only = 0",
        "PRAGMA journal_mode = WAL",
        "PRAGMA wal_checkpoint",
        "SELECT load_extension('x')",
        "SELECT fts3_tokenizer('x')",
        "BEGIN IMMEDIATE",
        "COMMIT; DELETE FROM t",
        "SELECT 1; DELETE FROM t",
        "EXPLAIN SELECT 1; DELETE FROM t",
        "EXPLAIN ATTACH '{there}/new.db' AS x",
        "REINDEX",
        "ANALYZE",
        "WITH x AS (SELECT 1) DELETE FROM t",
        "INSERT INTO t VALUES (9, 'z') RETURNING a",
        "ALTER TABLE t ADD COLUMN c",
        "DETACH main",
    ],
)
def test_the_sqlite_connection_itself_refuses(file: Path, sql: str) -> None:
    before = file.read_bytes()
    refused(f"sqlite:{file}", sql.format(there=file.parent))
    assert file.read_bytes() == before
    assert [one.name for one in file.parent.iterdir()] == [file.name]


def test_a_write_on_sqlite_can_neither_attach_nor_end_its_transaction(file: Path) -> None:
    _, start = database(f"sqlite:{file}")
    for sql in (f"ATTACH '{file.parent}/new.db' AS x", f"VACUUM INTO '{file.parent}/new.db'", "COMMIT", "SAVEPOINT a",
                "PRAGMA writable_schema = 1", "DELETE FROM t; DELETE FROM t"):  # fmt: skip
        with pytest.raises(DatabaseError):
            start(5).write(sql, 10)
    assert [one.name for one in file.parent.iterdir()] == [file.name]


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM t",
        "COPY t TO PROGRAM 'cat > {there}/new'",
        "COPY (SELECT 1) TO '{there}/new'",
        "COPY t FROM PROGRAM 'echo 1'",
        "COMMIT; DROP TABLE t",
        "ROLLBACK; DELETE FROM t",
        "SELECT 1; DELETE FROM t",
        "SELECT 1; COMMIT; DELETE FROM t",
        "EXPLAIN SELECT 1; DELETE FROM t",
        "SHOW ALL; DELETE FROM t",
        "EXPLAIN ANALYZE DELETE FROM t",
        "EXPLAIN ANALYZE INSERT INTO t VALUES (9, 'z')",
        "WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x",
        "SELECT * FROM t FOR UPDATE",
        "SELECT nextval('s')",
        "SELECT f_write()",
        "SELECT a INTO z FROM t",
        "SET TRANSACTION READ WRITE",
        "DO $$ BEGIN DELETE FROM t; END $$",
        "SELECT lo_create(0)",
        "TRUNCATE t",
        "COMMIT",
        "SELECT 1\0; DELETE FROM t",
    ],
)
def test_the_postgres_connection_itself_refuses_even_a_superuser(postgres_url: str, tmp_path: Path, sql: str) -> None:
    import psycopg

    tmp_path.chmod(0o777)
    with psycopg.connect(postgres_url, autocommit=True) as db:
        db.execute(MADE)
        db.execute("CREATE SEQUENCE s")
        db.execute("CREATE FUNCTION f_write() RETURNS int LANGUAGE sql AS 'INSERT INTO t VALUES (3) RETURNING a'")
        assert db.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user").fetchone() == (True,)
        said = refused(postgres_url, sql.format(there=tmp_path) if "{there}" in sql else sql)
        assert not sql.startswith("COPY") or "syntax error" in said, "it has to fail before anybody looks at rights"
        assert db.execute("SELECT count(*), sum(a) FROM t").fetchone() == (3, 6)
        assert db.execute("SELECT is_called FROM s").fetchone() == (False,)
        assert db.execute("SELECT to_regclass('z')").fetchone() == (None,)
    assert list(tmp_path.iterdir()) == []


def test_settings_of_a_read_are_gone_after_it(postgres_url: str) -> None:
    _, start = database(postgres_url)
    assert start(5).read("SHOW transaction_read_only", 1).rows == [["on"]]
    assert start(5).read("SHOW statement_timeout", 1).rows == [["5s"]]
    start(5).read("SELECT set_config('statement_timeout', '0', false)", 1)
    assert start(5).read("SHOW statement_timeout", 1).rows == [["5s"]]


def test_types_of_postgres_become_those_of_json(postgres_url: str) -> None:
    _, start = database(postgres_url)
    query = "SELECT 1, 2.5::float8, true, NULL, '{\"a\": [1]}'::jsonb, 1.10::numeric, date '2024-01-02', 'x'::bytea"
    assert start(5).read(query, 1).rows == [[1, 2.5, True, None, {"a": [1]}, "1.10", "2024-01-02", "\\x78"]]


async def test_bytes_and_odd_numbers_can_be_shown(file: Path) -> None:
    answer = told(await sql_toolset(f"sqlite:{file}").query("SELECT x'00ff', 1e999, -1e999"))
    assert answer["rows"] == [["0x00ff", "inf", "-inf"]]
