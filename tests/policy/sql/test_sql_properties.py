"""What must hold for any text."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from signoff.policy.sql import read_sql

DIALECTS = ("postgres", "sqlite", "mysql", "duckdb", "mssql", "oracle", "generic")
EFFECTS = ("writes", "runs", "sends", "changes", "discloses", "waits", "unknown")
WORDS = """
SELECT FROM WHERE t a b * , ( ) ; ' " ` [ ] $$ $x$ -- # /* */ /*! E' U&' \\ \\' '' "" = <> :: := : @ ? $1 1 1.5 1e
DELETE UPDATE INSERT INTO SET DROP TABLE WITH AS EXPLAIN ANALYZE PRAGMA SHOW DESC VALUES UNION ALL FOR lower count
pg_sleep sleep f_write . .tables
"""
PIECES = st.sampled_from([*WORDS.split(), " ", "\n", "\r", "\t", "\r\n", "\u00a0", "é", "ſ", "\x00"])
TEXTS = st.one_of(
    st.text(max_size=60), st.lists(PIECES, max_size=25).map("".join), st.lists(PIECES, max_size=25).map(" ".join)
)
READS = st.sampled_from([
    "SELECT a, lower(b) FROM t WHERE c = 'it''s; --'",
    "WITH x(a) AS (SELECT 1) SELECT count(*) FROM x",
    "EXPLAIN DELETE FROM t",
    "VALUES (1), (2)",
    "SELECT (SELECT max(a) FROM t) AS m UNION ALL SELECT 1",
    "TABLE t",
])  # fmt: skip
OTHERS = st.sampled_from([
    "SELECT f_write(a) FROM t",
    "WITH x AS (DELETE FROM t RETURNING a) SELECT a FROM x",
    "EXPLAIN ANALYZE DELETE FROM t",
    "SELECT a INTO b FROM t",
    "INSERT INTO t VALUES (1)",
])  # fmt: skip
GAPS = st.sampled_from([" ", "\n", "\t ", "  ", " /* x; y */ ", " -- x ; '\n", "\r\n"])


@examples(10_000)
@given(TEXTS, st.sampled_from(DIALECTS))
def test_it_never_raises_and_always_says_why(text: str, dialect: str) -> None:
    facts = read_sql(text, dialect)
    if facts.read_only:
        assert facts.statements and facts.why == ""
    else:
        assert facts.why.partition(": ")[0] in EFFECTS


@examples(3_000)
@given(TEXTS, st.sampled_from(DIALECTS))
def test_a_write_after_it_is_never_lost(text: str, dialect: str) -> None:
    assert not (read_sql(text, dialect).read_only and read_sql(text + "; DELETE FROM t", dialect).read_only) or (
        # Whatever ends within a comment takes what follows with it.
        read_sql(text + "\n; DELETE FROM t", dialect).read_only is False
    )


@examples(2_000, daily=40)
@given(st.one_of(READS, OTHERS), st.data(), st.sampled_from(("postgres", "sqlite", "generic")))
def test_blanks_comments_and_case_change_nothing(sql: str, data: st.DataObject, dialect: str) -> None:
    before = read_sql(sql, dialect)
    head, quote, rest = sql.partition("'")
    told = "".join(
        data.draw(GAPS) if char == " " else char for char in data.draw(st.sampled_from([head, head.lower()]))
    )
    after = read_sql(data.draw(GAPS) + told + quote + rest + data.draw(GAPS), dialect)
    assert (after.read_only, after.opaque) == (before.read_only, before.opaque)
    assert [one.tables for one in after.statements] == [one.tables for one in before.statements]


NESTED = (("(", ")"), ("NOT ", ""), ("- ", ""), ("CASE WHEN 1 THEN ", " END"), ("1 + ", ""), ("lower(", ")"))
DEEP = [
    # By day each dialect has one of the longest texts, and each of these some dialect: they take the time.
    pytest.param(dialect, count, NESTED if whole else [NESTED[number % len(NESTED)]], marks=marks)
    for number, dialect in enumerate(DIALECTS)
    for count, whole, marks in ((10, True, ()), (300, True, ()), (5_000, False, ()), (5_000, True, pytest.mark.nightly))
]


@pytest.mark.parametrize(("dialect", "count", "nested"), DEEP)
def test_depth_and_length_are_no_way_in(dialect: str, count: int, nested: Sequence[tuple[str, str]]) -> None:
    for part, end in nested:
        text = ("SELECT " + part * count + "f_write(1)" + end * count)[:65_000]
        assert not read_sql(text, dialect).read_only
