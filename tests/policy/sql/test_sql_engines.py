"""What is called a read is run on real databases, and has to leave them as they were."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path

from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st
from tests.profiles import examples

from signoff.policy.sql import read_sql

QUOTES = r"""' '' " "" ` [ ] $$ $x$ E' x' \ \' \\ -- # /* */""".split()
BETWEEN = [" ", "\n", "\r", ";", ",", "a", "1", "(", ")", " AS b", "\t", "é", "/**/", "$", "::text", "||", "-- ", "/* "]
PARTS = st.lists(st.sampled_from(QUOTES * 2 + BETWEEN), max_size=5).map("".join)
STARTS = st.sampled_from([
    "SELECT 1 ", "SELECT 1, '", "SELECT 'x' AS \"", "SELECT 1 /*", "SELECT 1 --", "VALUES (1) ", "SELECT a FROM t ",
    "WITH x AS (SELECT 1) ", "EXPLAIN ", "EXPLAIN ANALYZE ", "SELECT $$", "SELECT $x$", "SELECT E'",
])  # fmt: skip
DEEDS = st.sampled_from([
    ";DELETE FROM t", "; DELETE FROM t;", " DELETE FROM t", ";INSERT INTO t VALUES (9)", ", f_write() ", "INTO z",
    "; SELECT nextval('s')", ";DROP TABLE t",
])  # fmt: skip
ENDS = st.sampled_from(["", "'", '"', "*/", "\n", "$$", "$x$", "--", "--'", ' --"', " -- */", " --$$", "; SELECT 1"])
TEXTS = st.tuples(STARTS, PARTS, DEEDS, PARTS, ENDS).map("".join)
"""Writes among quotes and comments: whoever reads one of these otherwise than the database sees no write."""

READS = [
    "SELECT * FROM t",
    "SELECT a, (SELECT max(a) FROM t) FROM t GROUP BY a HAVING count(*) > 0 ORDER BY 1 LIMIT 3",
    "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 50) SELECT sum(x) FROM n",
    "EXPLAIN QUERY PLAN DELETE FROM t",
    "EXPLAIN INSERT INTO t VALUES (5)",
    "VALUES (1), (2)",
    "SELECT name FROM sqlite_master; PRAGMA table_info(t); PRAGMA integrity_check; PRAGMA quick_check(t)",
    "SELECT * FROM pragma_table_info('t'), json_each('[1,2]')",
    "SELECT strftime('%Y', 'now'), randomblob(8), group_concat(a, ';'), printf('%d', a), total(a) FROM t",
]


def made(path: Path) -> bytes:
    with closing(sqlite3.connect(path)) as db:
        db.executescript("CREATE TABLE t(a); INSERT INTO t VALUES (1), (2); PRAGMA user_version = 1;")
    return path.read_bytes()


def run_all(path: Path, sql: str) -> None:
    with closing(sqlite3.connect(path)) as db, suppress(sqlite3.Error):
        db.executescript(sql)
        db.commit()


def test_reads_leave_a_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    before = made(path)
    alone = sorted((*read_pragmas(), *READS))
    for sql in alone:
        assert read_sql(sql, "sqlite").read_only, sql
        with closing(sqlite3.connect(path)) as db:
            for one in sql.split("; "):
                db.execute(one).fetchall()
            db.commit()
        assert path.read_bytes() == before, sql
    assert [one.name for one in tmp_path.iterdir()] == ["t.db"]


def read_pragmas() -> list[str]:
    """Every pragma this SQLite has that is called a read when it stands alone."""
    with closing(sqlite3.connect(":memory:")) as db:
        names = [f"PRAGMA {name}" for (name,) in db.execute("SELECT name FROM pragma_pragma_list")]
    reads = [sql for sql in names if read_sql(sql, "sqlite").read_only]
    assert len(reads) > 30
    return reads


def test_texts_made_to_deceive_do_not_change_a_file(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    before = made(path)
    seen: list[bool] = []

    @examples(8_000, suppress=HealthCheck)
    @given(TEXTS)
    @example("SELECT 'x\\'; DELETE FROM t; --'")
    @example("SELECT 1 /* /* */ ; DELETE FROM t; -- */")
    @example("SELECT [a'] , '; DELETE FROM t --'")
    def run(sql: str) -> None:
        for dialect in ("sqlite", "generic"):
            seen.append(read_sql(sql, dialect).read_only)
            if seen[-1]:
                run_all(path, sql)
                assert path.read_bytes() == before

    run()
    assert sum(seen) > 0.02 * len(seen), "hardly any text was a read: this proves nothing"


def test_texts_made_to_deceive_do_not_change_a_server(postgres_url: str) -> None:
    import psycopg

    seen: list[bool] = []
    with psycopg.connect(postgres_url, autocommit=True) as db:
        db.execute(
            "CREATE TABLE t(a int); INSERT INTO t VALUES (1), (2); CREATE SEQUENCE s;"
            "CREATE FUNCTION f_write() RETURNS int LANGUAGE sql AS 'INSERT INTO t VALUES (3) RETURNING a'"
        )

        def state() -> object:
            count = "SELECT (SELECT count(*) FROM t), (SELECT is_called FROM s), "
            return db.execute(
                count + "(SELECT count(*) FROM pg_class WHERE relnamespace = 't'::regclass::oid::int)"
            ).fetchone()

        before = state()

        @examples(5_000, suppress=HealthCheck)
        @given(TEXTS)
        @example("SELECT 'x\\'; DELETE FROM t; --'")
        @example("SELECT $x$ $$ $x$; DELETE FROM t; -- $$")
        @example("/* /* */ SELECT 1; */ DELETE FROM t")
        @example("SELECT a$$; DELETE FROM t; --$$")
        def run(sql: str) -> None:
            for dialect in ("postgres", "generic"):
                seen.append(read_sql(sql, dialect).read_only)
                if seen[-1]:
                    with suppress(psycopg.Error):
                        db.pgconn.exec_(sql.encode())  # the simple protocol: every statement in it is run
                    assert state() == before

        run()
    assert sum(seen) > 0.02 * len(seen), "hardly any text was a read: this proves nothing"
