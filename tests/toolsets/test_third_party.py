"""The example of a toolset by somebody else: installed for real, found by its entry point, on SQLite and PostgreSQL."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests import start
from tests.start import signoff

EXAMPLE = Path(__file__).parents[2] / "examples" / "third_party_database"
UV = Path(sys.executable).with_name("uv")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that the package was installed into, from its own pyproject.toml."""
    source, target = tmp_path_factory.mktemp("source") / "package", tmp_path_factory.mktemp("site")
    shutil.copytree(EXAMPLE, source)
    done = subprocess.run(
        [
            *(UV, "pip", "install", "--offline", "--no-deps", "--no-build-isolation", "--no-config"),
            *("--python", sys.executable, "--target", str(target), str(source)),
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "UV_NO_CACHE": "1", "UV_NO_PROGRESS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert (target / "orders_db-1.0.0.dist-info" / "entry_points.txt").exists()
    return target


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """The example's project, without the package beside it."""
    here = tmp_path / "shop"
    shutil.copytree(EXAMPLE, here, ignore=shutil.ignore_patterns("src", "pyproject.toml", "*.db"))
    start.run([sys.executable, "make_db.py"], cwd=here, check=True)
    return here


def states(shop: Path) -> list[str]:
    with sqlite3.connect(shop / "orders.db") as database:
        return [state for (state,) in database.execute("SELECT state FROM orders ORDER BY id")]


def ran(shop: Path, installed: Path, mode: str, **environment: str) -> list[dict[str, Any]]:
    """The events of the example's run, through the program."""
    done = signoff(
        *("run", "clerk", "go", "--model", "script:script.yaml", "--mode", mode, "--json"),
        cwd=shop,
        PYTHONPATH=str(installed),
        **environment,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def check(events: list[dict[str, Any]], mode: str) -> None:
    """What became of each call: the reads ran unasked, whatever anybody would have answered."""
    first = {one["call"]: one for one in reversed(events) if "call" in one}
    assert first["call-1-1"]["event"] == first["call-5-1"]["event"] == "allowed"
    assert first["call-2-1"]["event"] == ("auto_approved" if mode == "auto_approve" else "denied")
    assert "this database is read-only" in first["call-3-1"]["reason"]
    assert "tables stay where they are" in first["call-4-1"]["reason"]
    assert {first[call]["by"] for call in ("call-3-1", "call-4-1")} == {"policy"}


@pytest.mark.mission("P1", "P10")
def test_p1_p10_a_package_is_found_by_its_entry_point_once_it_is_allowed(shop: Path, installed: Path) -> None:
    done = signoff("toolsets", "--json", cwd=shop, PYTHONPATH=str(installed))
    assert done.returncode == 0, done.stderr
    found = {one["name"]: one for one in json.loads(done.stdout)["toolsets"]}
    assert found["orders"]["origin"] == "signoff.yaml:2, use: orders_db"
    assert found["orders_db"]["origin"] == "package orders-db 1.0.0, orders_db:toolset"
    assert [(one["tool"], one["effect"]) for one in found["orders"]["tools"]] == [("run_sql", "allow")]
    assert [(one["tool"], one["effect"]) for one in found["reports"]["tools"]] == [("reports_run_sql", "allow")]
    text = (shop / "signoff.yaml").read_text()
    (shop / "signoff.yaml").write_text(text.replace('allow: ["orders_db"]', 'allow: ["other"]'))
    done = signoff("toolsets", cwd=shop, PYTHONPATH=str(installed))
    assert done.returncode == 1
    assert 'plugins: {allow: ["other", "orders_db"]}' in done.stdout
    done = signoff("toolsets", cwd=shop)
    assert done.returncode == 1
    assert "there is no toolset `orders_db`" in done.stdout


@pytest.mark.mission("P10")
@pytest.mark.parametrize(
    ("mode", "after"), [("auto_deny", ["paid", "open", "open"]), ("auto_approve", ["paid", "late", "late"])]
)
def test_p10_reads_run_writes_ask_and_readonly_refuses_on_sqlite(
    shop: Path, installed: Path, mode: str, after: list[str]
) -> None:
    events = ran(shop, installed, mode)
    assert states(shop) == after
    check(events, mode)


@pytest.mark.mission("P10")
@pytest.mark.parametrize(
    ("mode", "after"), [("auto_deny", ["paid", "open", "open"]), ("auto_approve", ["paid", "late", "late"])]
)
def test_p10_reads_run_writes_ask_and_readonly_refuses_on_postgres(
    shop: Path, installed: Path, postgres_url: str, mode: str, after: list[str]
) -> None:
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as database:
        database.execute("CREATE TABLE orders (id SERIAL PRIMARY KEY, customer TEXT, total INTEGER, state TEXT)")
        for row in (("ana", 120, "paid"), ("ben", 80, "open"), ("eve", 15, "open")):
            database.execute("INSERT INTO orders (customer, total, state) VALUES (%s, %s, %s)", row)
    events = ran(shop, installed, mode, ORDERS_DSN=postgres_url)
    with psycopg.connect(postgres_url) as database:
        found = [state for (state,) in database.execute("SELECT state FROM orders ORDER BY id")]
    assert found == after
    check(events, mode)
    assert postgres_url not in json.dumps(events)
