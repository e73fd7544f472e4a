"""What is told about statements: operations, tables, columns, functions and reasons."""

from __future__ import annotations

import logging
import sys

import pytest
from tests import start
from tests.tables import table

from signoff.policy.sql import SqlFacts, Statement, read_sql


def only(sql: str, dialect: str = "postgres") -> Statement:
    facts = read_sql(sql, dialect)
    assert not facts.opaque, facts.opaque
    (statement,) = facts.statements
    return statement


def test_a_query_names_its_tables_columns_and_functions() -> None:
    said = only('SELECT u.id, lower(u.name), count(*) FROM app.Users u JOIN "Orders" o ON o.uid = u.id GROUP BY 1, 2')
    assert (said.operation, said.read_only, said.why, said.word) == ("select", True, "", "")
    assert said.tables == ("app.users", "Orders")
    assert set(said.columns) == {"id", "name", "uid"}
    assert set(said.functions) == {"lower", "count"}
    assert said.writes == ()


@table(
    ("sql", "columns"),
    [
        ("SELECT * FROM t", {"*"}),
        ("SELECT u.*, a FROM t u", {"*", "a"}),
        ("SELECT count(*) FROM t WHERE b = 1", {"b"}),
        ("SELECT to_jsonb(u) FROM t u", {"u", "*"}),
        ("SELECT t FROM t", {"t", "*"}),
        ("SELECT a FROM t JOIN v USING (ssn)", {"a", "ssn"}),
        ("TABLE t", {"*"}),
        ("INSERT INTO t (a, b) SELECT c, 1 FROM v", {"a", "b", "c"}),
        ("UPDATE t SET a = b", {"a", "b"}),
    ],
)
def test_columns_are_told_and_a_star_for_all_of_them(sql: str, columns: set[str]) -> None:
    assert set(only(sql).columns) == columns


@table(
    ("sql", "operation", "tables", "writes", "why"),
    [
        ("DELETE FROM t WHERE a = 1", "delete", {"t"}, {"t"}, "writes: `DELETE` removes rows of `t`"),
        ("INSERT INTO t SELECT * FROM u", "insert", {"t", "u"}, {"t"}, "writes: `INSERT` adds rows to `t`"),
        ("UPDATE s.t SET a = u.a FROM u", "update", {"s.t", "u"}, {"s.t"}, "writes: `UPDATE` changes rows of `s.t`"),
        ("WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x, v", "delete", {"t", "v"}, {"t"}, "writes: `DELETE`"),
        ("SELECT a INTO n FROM t", "select into", {"t", "n"}, {"n"}, "writes: `SELECT INTO`"),
        ("SELECT a FROM t FOR UPDATE", "lock", {"t"}, set(), "changes: `FOR UPDATE`"),
        ("DROP TABLE a, b", "drop", {"a", "b"}, {"a", "b"}, "writes: `DROP` removes `a`, `b`"),
        ("TRUNCATE a, b", "truncate", {"a", "b"}, {"a", "b"}, "writes: `TRUNCATE` empties `a`, `b`"),
        ("CREATE TABLE n AS SELECT * FROM t", "create", {"n", "t"}, {"n"}, "writes: `CREATE` creates `n`"),
        ("ALTER TABLE t ADD COLUMN a int", "alter", {"t"}, {"t"}, "writes: `ALTER` changes `t`"),
        ("COPY t TO STDOUT", "copy", {"t"}, {"t"}, "writes: `COPY` copies rows or files of `t`"),
        ("EXPLAIN ANALYZE DELETE FROM t", "delete", {"t"}, {"t"}, "writes: `DELETE` removes rows of `t` (`EXPLAIN"),
        ("SET x = 1", "set", set(), set(), "changes: `SET`"),
    ],
)
def test_what_is_no_read(sql: str, operation: str, tables: set[str], writes: set[str], why: str) -> None:
    said = only(sql)
    assert not said.read_only
    assert (said.operation, set(said.tables), set(said.writes)) == (operation, tables, writes)
    assert said.why.startswith(why)
    assert read_sql(sql, "postgres").why == said.why


def test_replace_and_deletes_from_several_tables_in_mysql() -> None:
    assert (
        only("REPLACE INTO t VALUES (1)", "mysql").operation,
        only("REPLACE INTO t VALUES (1)", "mysql").writes,
    ) == (
        "replace",
        ("t",),
    )
    assert set(only("DELETE a, b FROM a JOIN b ON a.i = b.i", "mysql").writes) == {"a", "b"}


def test_a_name_that_hides_a_table_does_not_hide_it_from_the_rules() -> None:
    assert only("WITH secrets AS (SELECT * FROM secrets) SELECT * FROM secrets").tables == ("secrets",)
    assert only("WITH a AS (SELECT 1), b AS (SELECT * FROM a) SELECT * FROM b").tables == ()
    assert only("SELECT * FROM (WITH a AS (SELECT 1) SELECT * FROM a) x, a").tables == ("a",)
    assert only("WITH RECURSIVE a AS (SELECT 1 UNION ALL SELECT * FROM a, t) SELECT * FROM a").tables == ("t",)


def test_every_statement_is_told_and_judged() -> None:
    facts = read_sql("SELECT 1 FROM a; DELETE FROM b;; SHOW x", "postgres")
    assert [one.operation for one in facts.statements] == ["select", "delete", "show"]
    assert [one.read_only for one in facts.statements] == [True, False, True]
    assert not facts.read_only and facts.word == "DELETE"
    assert read_sql("SELECT 1; SELECT 2", "postgres").read_only


@pytest.mark.parametrize("sql", ["", "  ", ";", "-- nothing", "/* nothing */ ;"])
def test_nothing_is_no_read(sql: str) -> None:
    assert read_sql(sql) == SqlFacts(())
    assert read_sql(sql).why == "unknown: holds no statement"


def test_what_is_not_understood_is_opaque_and_says_why() -> None:
    for sql, dialect, why in [
        ("SELECT 1", "cobol", "dialect that signoff does not know"),
        ("SELECT " + "1," * 40_000 + "1", "postgres", "longer than 65,536"),
        ("SELECT " + "(" * 200 + "1" + ")" * 200, "postgres", "too deep"),
        ("SELECT 1;" * 200, "postgres", "more than 100 statements"),
        ("SELECT\u00a01", "postgres", "U+00A0"),
        ("SELECT 'a\u200bb'", "postgres", "U+200B"),
        ("SELECT 1\x00", "sqlite", "U+0000"),
        ("SELECT 1 -- a\rDELETE FROM t", "sqlite", "carriage return"),
        ("SELECT 'x", "sqlite", "not closed"),
        ("SELECT FROM FROM", "postgres", "cannot be parsed"),
    ]:
        facts = read_sql(sql, dialect)
        assert why in facts.opaque
        assert facts.why == f"unknown: {facts.opaque}"
        assert not facts.read_only


def test_a_known_write_is_told_even_where_the_rest_is_not_understood() -> None:
    facts = read_sql("SELECT 1 INTO OUTFILE '/x'", "mysql")
    assert (
        facts.why == "writes: `INTO OUTFILE` writes the result to a table, file or variable"
        and facts.word == "INTO OUTFILE"
    )
    assert facts.opaque, "its tables are not known, and a rule about tables has to hear that"


@table(
    ("sql", "operation", "why"),
    [
        ("SELECT f_write()", "select", "unknown: `f_write`"),
        ("SELECT pg_read_file('x')", "select", "discloses: `pg_read_file`"),
        ("INSERT INTO t SELECT f_write()", "insert", "writes: `INSERT`"),
        ("DELETE FROM t WHERE pg_sleep(1) IS NULL", "delete", "writes: `DELETE`"),
        ("EXPLAIN SELECT f_write()", "explain", "unknown: `f_write`"),
        ("EXPLAIN ANALYZE DELETE FROM t WHERE f_write() = 1", "delete", "writes: `DELETE`"),
        ("CREATE TABLE n AS SELECT f_write() AS a", "create", "writes: `CREATE`"),
        ("CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'", "create", "writes: `CREATE`"),
        ("CREATE EXTENSION dblink", "create", "writes: `CREATE`"),
        ("COPY t TO PROGRAM 'cat'", "copy", "runs: `COPY … PROGRAM` runs a program"),
        ("COPY t FROM '/etc/passwd'", "copy", "writes: `COPY`"),
    ],
)
def test_what_may_do_more_than_its_operation_says_is_opaque_too(sql: str, operation: str, why: str) -> None:
    facts = read_sql(sql, "postgres")
    assert facts.statements[0].operation == operation
    assert facts.opaque, "or a rule that allows the operation would allow this"
    assert facts.why.startswith(why)


def test_dialects_have_several_names() -> None:
    for names in (
        ("postgres", "postgresql", "pg", "PG"),
        ("sqlite", "sqlite3"),
        ("mysql", "mariadb"),
        ("mssql", "tsql"),
    ):
        assert len({read_sql("SELECT a FROM t WHERE b = 1", name) for name in names}) == 1


def test_case_is_kept_only_where_quotes_keep_it() -> None:
    assert only('SELECT * FROM "Users", Orders', "postgres").tables == ("Users", "orders")
    assert only('SELECT * FROM "Users", Orders', "sqlite").tables == ("users", "orders")


def test_without_a_dialect_every_reading_counts() -> None:
    assert read_sql("SELECT a FROM t").read_only
    assert read_sql("SELECT soundex(a) FROM t", "mysql").read_only
    assert not read_sql("SELECT soundex(a) FROM t").read_only, "in PostgreSQL it is somebody's own"
    assert read_sql("SELECT 1 # , f()\n", "mysql").read_only
    assert not read_sql("SELECT 1 # , f()\n").read_only


def test_comments_nest_where_the_database_nests_them() -> None:
    sql = "/* /* x */ SELECT 1; */ SELECT 2"
    assert read_sql(sql, "postgres").read_only and len(read_sql(sql, "postgres").statements) == 1
    assert read_sql("/* /* x */ */ DELETE FROM t", "postgres").why.startswith("writes")
    for dialect in ("sqlite", "mysql", "oracle", "generic"):
        assert not read_sql(sql, dialect).read_only
    assert read_sql("/* /* */ DELETE FROM t --", "postgres").opaque, "it never ends"


def test_functions_that_make_as_much_as_they_are_told() -> None:
    for sql in (
        "SELECT printf('%99999999d', 1)",
        "SELECT printf('%.*c', 1000000000, 'x')",
        "SELECT zeroblob(99999999)",
    ):
        assert read_sql(sql, "sqlite").why.startswith("waits:"), sql
    assert read_sql("SELECT printf('%5.2f %s %%', a, b), zeroblob(8) FROM t", "sqlite").read_only


def test_a_function_that_is_harmless_only_without_arguments() -> None:
    assert read_sql("SELECT LAST_INSERT_ID()", "mysql").read_only
    assert not read_sql("SELECT LAST_INSERT_ID(5)", "mysql").read_only


def test_dot_commands_are_told_only_where_they_stand_alone() -> None:
    assert read_sql(".tables", "sqlite").read_only
    assert read_sql("  .schema users\n", "sqlite").read_only
    for text in (".tables\n.shell x", ".schema 'x'", ".schema |x", ".tables; DELETE FROM t", ".tables\nDELETE FROM t"):
        assert not read_sql(text, "sqlite").read_only
    assert not read_sql(".tables", "postgres").read_only


def test_the_parser_is_loaded_late_and_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    program = "import sys; import signoff.policy.sql; sys.exit('sqlglot' in sys.modules)"
    assert start.run([sys.executable, "-c", program], fresh=True).returncode == 0
    with caplog.at_level(logging.DEBUG):
        read_sql("ALTER SYSTEM SET x TO y", "postgres")
        read_sql("SELECT d->>'$..[' FROM t", "sqlite")
    assert caplog.records == []
