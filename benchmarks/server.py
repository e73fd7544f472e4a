"""A PostgreSQL server of one's own, on a disk of one's choice, from the wheel that the tests use too."""

from __future__ import annotations

import importlib.util
import os
import re
import secrets
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests import postgres


class NoServer(Exception):
    """Why there is none."""


class Server:
    """Lives until it is closed, or this process ends."""

    def __init__(self, directory: Path, environment: Mapping[str, str] | None = None) -> None:
        """Its files are somewhere below `directory`, which has to be one that everybody may enter."""
        if not postgres.is_available() or importlib.util.find_spec("psycopg") is None:
            raise NoServer("PostgreSQL is left out: its server or psycopg is not installed (requirements/bench.txt)")
        self._process = subprocess.Popen(
            [sys.executable, __file__, secrets.token_hex(6)],
            env=os.environ | {"TMPDIR": str(directory)} | dict(environment or {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        if not self.url:
            self.close()
            raise NoServer("PostgreSQL is left out: its server did not start; what it said is above")

    def fresh(self, name: str) -> str:
        """The URL of an empty schema, which looks like a database of its own."""
        import psycopg

        schema = re.sub("[^a-z0-9]+", "_", name.lower()).strip("_")
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"drop schema if exists {schema} cascade".encode())
            connection.execute(f"create schema {schema}".encode())
        return f"{self.url}&options={quote(f'-csearch_path={schema}')}"

    @property
    def version(self) -> str:
        import psycopg

        with psycopg.connect(self.url) as connection:
            [(version,)] = connection.execute("show server_version").fetchall()
        return version.split()[0]

    def close(self) -> None:
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()
            process.wait()


def _make_durable(url: str) -> None:
    """The server of the tests syncs nothing; here that is what is measured."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        for setting in ("fsync", "full_page_writes"):
            connection.execute(f"alter system set {setting} = on".encode())
        connection.execute("select pg_reload_conf()")
        until = time.monotonic() + 10
        while connection.execute("show fsync").fetchone() != ("on",):
            assert time.monotonic() < until, "the server does not read its settings anew"


if __name__ == "__main__":
    with postgres.server(sys.argv[1]) as url:
        _make_durable(url)
        print(url, flush=True)
        sys.stdin.read()
