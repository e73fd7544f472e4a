"""The lists of names, held against the databases they speak of."""

from __future__ import annotations

import sqlite3
import tomllib
from contextlib import closing
from importlib.resources import files
from typing import Any

import pytest

from signoff.policy.sql import read_sql
from signoff.policy.sql.names import listed, pure

LISTS: dict[str, Any] = tomllib.loads(files("signoff.policy.sql").joinpath("names.toml").read_text("utf-8"))
VOLATILE = frozenset("""
array_sample array_shuffle clock_timestamp current_query currval gen_random_uuid lastval pg_blocking_pids
pg_control_checkpoint pg_control_init pg_control_recovery pg_control_system pg_current_wal_flush_lsn
pg_current_wal_insert_lsn pg_current_wal_lsn pg_database_size pg_get_wait_events pg_indexes_size pg_is_in_recovery
pg_is_wal_replay_paused pg_jit_available pg_last_committed_xact pg_last_wal_receive_lsn pg_last_wal_replay_lsn
pg_last_xact_replay_timestamp pg_lock_status pg_notification_queue_usage pg_partition_ancestors pg_partition_tree
pg_prepared_xact pg_relation_size pg_safe_snapshot_blocking_pids pg_sequence_last_value
pg_show_replication_origin_status pg_table_size pg_tablespace_size pg_total_relation_size pg_xact_commit_timestamp
pg_xact_status random random_normal timeofday txid_status uuidv4 uuidv7
""".split())  # fmt: skip
"""Looked at one by one: they report what changes by itself, or make random values, and change nothing."""


def test_no_function_is_on_both_sides() -> None:
    doing = {name for effect in LISTS["effects"] for name in listed("effects", effect)}
    for dialect in LISTS["functions"]:
        both = doing & pure(dialect, generic=False)
        assert both <= ({"glob"} if dialect == "sqlite" else set()), "SQLite's `glob` compares, DuckDB's lists files"


def test_every_effect_is_said_in_words() -> None:
    assert set(LISTS["said"]) == set(LISTS["effects"])


def test_what_the_server_calls_volatile_was_looked_at(postgres_url: str) -> None:
    import psycopg

    query = "SELECT DISTINCT proname FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND provolatile = 'v'"
    with psycopg.connect(postgres_url) as db:
        volatile = {str(name) for (name,) in db.execute(query)}
    assert volatile & pure("postgres", generic=False) <= VOLATILE
    assert len(volatile) > 100


def test_every_function_of_the_server_that_changes_something_asks(postgres_url: str) -> None:
    import psycopg

    query = "SELECT DISTINCT proname FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace AND provolatile = 'v'"
    with psycopg.connect(postgres_url) as db:
        names = sorted(str(name) for (name,) in db.execute(query))
    for name in names:
        if name not in VOLATILE and not name.startswith("pg_stat_get_"):
            assert not read_sql(f"SELECT {name}(1)", "postgres").read_only, name


def test_sqlite_knows_what_is_called_its_own() -> None:
    with closing(sqlite3.connect(":memory:")) as db:
        functions = {str(name) for (name,) in db.execute("SELECT name FROM pragma_function_list")}
        pragmas = {str(name) for (name,) in db.execute("SELECT name FROM pragma_pragma_list")}
    asks = {"load_extension", "fts3_tokenizer", "fts5", "optimize", "sqlite_log", "rtreenode", "fts5_source_id"}
    assert {name for name in functions - pure("sqlite", generic=False) if name.isidentifier()} <= asks
    writes = {"wal_checkpoint", "optimize", "incremental_vacuum", "shrink_memory", "case_sensitive_like"}
    assert writes <= pragmas
    assert not writes & (listed("pragmas", "alone") | listed("pragmas", "about"))


@pytest.mark.parametrize("dialect", ["postgres", "sqlite", "mysql", "duckdb", "mssql", "oracle", "generic"])
def test_lists_hold_plain_names_in_lower_case(dialect: str) -> None:
    for name in pure(dialect, generic=dialect == "generic"):
        assert name.isascii() and name == name.lower() and name.isidentifier()


@pytest.mark.parametrize("dialect", ["postgres", "sqlite", "mysql", "duckdb", "mssql", "oracle", "generic"])
def test_a_keyword_where_a_function_stands_is_somebodys_function(dialect: str) -> None:
    words = listed("words", "infix") | set(LISTS["words"]["after"])
    for word in words - pure(dialect, generic=dialect == "generic"):
        for sql in (f"SELECT 1, {word}(a, 'x') FROM t", f"SELECT * FROM t WHERE {word}(a)", f"SELECT 1 + {word}(1, 2)"):
            assert not read_sql(sql, dialect).read_only, sql
