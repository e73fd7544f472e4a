"""The shared corpus of SQL, read in place: no write is taken for a read, and reads are hardly ever asked about."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from signoff.policy.sql import read_sql

CORPUS = Path(__file__).parents[4] / "shared" / "corpora" / "sql_readonly.jsonl"
MOST_ASKED = 0.05


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    if not CORPUS.exists():
        pytest.skip(f"the shared corpus is not there: {CORPUS.name}")
    return [json.loads(line) for line in CORPUS.read_text("utf-8").splitlines()]


def test_nothing_else_is_taken_for_a_read(rows: list[dict[str, Any]]) -> None:
    wrong = [row["sql"] for row in rows if row["expected"] != "read" and read_sql(row["sql"], row["engine"]).read_only]
    assert wrong == []


def test_reads_are_hardly_ever_asked_about(rows: list[dict[str, Any]]) -> None:
    reads = [row for row in rows if row["expected"] == "read"]
    asked = [row["sql"] for row in reads if not read_sql(row["sql"], row["engine"]).read_only]
    assert reads and len(asked) <= MOST_ASKED * len(reads), asked
