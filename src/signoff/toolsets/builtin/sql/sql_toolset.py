"""The SQL tools: `query` reads and cannot write, `execute` changes data and is asked about.

`signoff.policy.sql` decides whether SQL only reads. The connections of `databases` enforce it even where that is wrong.
Failures raise `ToolFailed`: the model sees the error and continues, and no retry is used up.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Mapping
from typing import Any, cast

from pydantic_ai import RunContext
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.toolsets import ToolsetTool

from signoff.core.verdict import Effect, Verdict
from signoff.errors import WrongUse
from signoff.policy.builtin import builtin_policy
from signoff.policy.sql import SqlFacts, read_sql
from signoff.toolsets.builtin.sql.databases import DatabaseError, Rows, RunningStatement, database
from signoff.toolsets.own_policy import AttachedToolset

_TRANSACTIONS = frozenset("begin start commit end rollback abort savepoint release".split())
_READ_ONLY = "this database is read-only: use `query`, which only reads"


def sql_toolset(
    url: str,
    *,
    readonly: bool = False,
    max_rows: int = 200,
    max_chars: int = 50_000,
    timeout: float = 30,
    id: str = "sql",
) -> SqlToolset:
    """SQL tools for the database at `sqlite:PATH` or `postgresql://…`; the latter needs the extra `postgres`.

    With `readonly` there is no `execute`. An answer has at most `max_rows` rows and `max_chars` characters, and a
    statement that takes longer than `timeout` seconds is stopped. On PostgreSQL, use a role with the least privileges
    that the work needs: functions of the server may do more than write.
    """
    if max_rows < 1 or max_chars < 200 or not 0 < timeout < math.inf:
        raise WrongUse("an SQL toolset needs max_rows >= 1, max_chars >= 200 and timeout > 0")
    return SqlToolset(url, readonly=readonly, max_rows=max_rows, max_chars=max_chars, timeout=timeout, id=id)


class SqlToolset(AttachedToolset):
    """Tools for one database, with a description of what each call will do."""

    def __init__(
        self, url: str, *, readonly: bool, max_rows: int, max_chars: int, timeout: float, id: str = "sql"
    ) -> None:
        self.dialect, self._start = database(url)
        policy = builtin_policy("sql", dialect=self.dialect)
        assert policy is not None
        self.policy = policy
        self.readonly = readonly
        self.max_rows = max_rows
        self.max_chars = max_chars
        self.time_limit = timeout
        super().__init__([self.query] if readonly else [self.query, self.execute], id=id)

    # what the toolset declares about its calls

    def capability_labels(self, name: str, args: Mapping[str, Any], ctx: Any) -> tuple[str, ...]:
        """`data.read` for SQL that is known to only read, and `data.write` for everything else."""
        return ("data.read",) if self.facts(args).read_only else ("data.write",)

    def needs_approval(self, name: str, args: Mapping[str, Any], ctx: Any) -> Verdict:
        """The verdict of the toolset's rules. A read-only toolset denies everything but `query`."""
        if self.readonly and name != "query":
            return Verdict(effect=Effect.DENY, rules=(self.policy.name,), reason=_READ_ONLY)
        return super().needs_approval(name, args, ctx)

    def describe_approval(self, name: str, args: Mapping[str, Any], ctx: Any) -> Mapping[str, Any]:
        """What the SQL does, to which tables, and why it is asked about."""
        facts = self.facts(args)
        said = [_said(one.operation, one.writes or one.tables) for one in facts.statements]
        reason = facts.sentence
        return {"summary": "; ".join(said) or "SQL that is not understood", "reason": reason}

    def facts(self, args: Mapping[str, Any]) -> SqlFacts:
        """The facts about the SQL of a call."""
        sql = args.get("sql")
        return read_sql(sql, self.dialect) if isinstance(sql, str) else SqlFacts((), "is not a text")

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Call a tool. A read-only toolset refuses `execute`, however the call came about."""
        if self.readonly and name != "query":
            raise ToolFailed(_READ_ONLY)
        return await super().call_tool(name, tool_args, ctx, tool)

    # the tools

    async def query(self, sql: str) -> str:
        """Read from the database with one SQL statement that changes nothing. Returns JSON: columns, rows, truncated.

        Args:
            sql: One statement: SELECT, WITH, VALUES, EXPLAIN, SHOW or a PRAGMA that only reports.
        """
        facts = self.facts({"sql": sql})
        _one(facts)
        if facts.why.startswith("writes:"):
            way = "" if self.readonly else " Use `execute` for anything that is not a plain read."
            raise ToolFailed(f"`query` only reads: {facts.sentence}.{way}")
        if facts.statements and facts.statements[0].word.startswith("."):
            raise ToolFailed("a command of the sqlite3 program is not SQL; read sqlite_schema instead")
        rows = await self._run(lambda job: job.read(sql, self.max_rows))
        return self._answer(rows)

    async def execute(self, sql: str) -> str:
        """Run one SQL statement that changes the database, in a transaction of its own. Returns JSON: rowcount.

        Args:
            sql: One statement: INSERT, UPDATE, DELETE, CREATE … BEGIN, COMMIT and the like are done for you.
        """
        facts = self.facts({"sql": sql})
        _one(facts)
        if facts.read_only:
            return await self.query(sql)  # through the connection that cannot write
        if facts.statements and facts.statements[0].operation in _TRANSACTIONS:
            raise ToolFailed("every call is its own transaction; leave out BEGIN, COMMIT and the like")
        rows = await self._run(lambda job: job.write(sql, self.max_rows))
        return self._answer(rows, rowcount=rows.changed)

    # how they are run

    async def _run(self, work: Callable[[RunningStatement], Rows]) -> Rows:
        """Run work in a thread. On timeout or cancellation, the statement is stopped before this returns."""
        job = self._start(self.time_limit)
        running = asyncio.ensure_future(asyncio.to_thread(work, job))
        try:
            done, _ = await asyncio.wait([running], timeout=self.time_limit)
        except asyncio.CancelledError:
            await _ended(job, running)
            raise
        if not done:
            await _ended(job, running)
            if running.exception() is None:  # it finished at the last moment, and its changes are committed
                return running.result()
            raise ToolFailed(f"the database took longer than {self.time_limit:g} seconds and was stopped")
        try:
            return running.result()
        except DatabaseError as error:
            raise ToolFailed(f"the database refused: {error}") from error

    def _answer(self, found: Rows, **more: Any) -> str:
        columns = [_shown(name, 100)[0] for name in found.columns]
        answer: dict[str, Any] = {**more, "columns": columns, "rows": [], "truncated": found.more}
        if not found.columns and more:
            return json.dumps(more)
        left = self.max_chars - len(json.dumps(answer))
        if left < 0:
            raise ToolFailed(f"{len(columns)} columns are too many to show; name the ones you need")
        for row in found.rows:
            shown = [_shown(value, self.max_chars // 4) for value in row]
            left -= len(json.dumps(shown, ensure_ascii=False, default=str)) + 2
            if left < 0 or any(cut for _, cut in shown):
                answer["truncated"] = True
            if left < 0:
                break
            answer["rows"].append([value for value, _ in shown])
        return json.dumps(answer, ensure_ascii=False, default=str)


async def _ended(job: RunningStatement, running: asyncio.Future[Rows]) -> None:
    """Stop a job and wait until its thread is done. The stop is repeated, because one that comes too early is lost."""
    while not running.done():
        await asyncio.to_thread(job.stop)
        await asyncio.wait([running], timeout=0.05)
    running.exception()


def _one(facts: SqlFacts) -> None:
    if len(facts.statements) > 1:
        raise ToolFailed("this SQL has several statements; send one at a time")
    if not facts.statements and not facts.opaque:
        raise ToolFailed("this SQL has no statement")


def _said(operation: str, tables: tuple[str, ...]) -> str:
    return f"{operation.upper()} {', '.join(tables)}".rstrip()


def _shown(value: Any, most: int) -> tuple[Any, bool]:
    """Return a value that JSON can represent, and whether it was truncated."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        value = f"0x{bytes(cast('bytes', value))[: most // 2 + 1].hex()}"
    elif isinstance(value, float) and not math.isfinite(value):
        value = str(value)
    if isinstance(value, str) and len(value) > most:
        return f"{value[:most]}…", True
    if len(text := json.dumps(value, ensure_ascii=False, default=str)) > most + 2:
        return f"{text[:most]}…", True
    return value, False
