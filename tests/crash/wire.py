"""Stands between a process and its PostgreSQL server, reads along, and kills the process at a statement.

Before a statement reaches the server; or when a commit has: then the server does it, and nobody is left to hear of it.
"""

from __future__ import annotations

import mmap
import os
import re
import selectors
import signal
import socket
import struct
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote, unquote

from tests.crash.faults import Log, is_change
from tests.crash.fork import Child

SOCKET = ".s.PGSQL.5432"


class Wire:
    """A line to the server that one process is given instead of the real one."""

    def __init__(self, url: str, log: Log, process: str, die_at: int = 0, *, sent: bool = False) -> None:
        """Kill before the statement of that number; with `sent`, after the commit of that number."""
        self._directory = tempfile.mkdtemp(prefix="wire-")
        self._counts = mmap.mmap(-1, 16)
        found = re.search(r"host=([^&]*)", url)
        assert found is not None, "the server of the tests is reached through a socket"
        self.url = url.replace(found[0], f"host={quote(self._directory, safe='')}")
        server = unquote(found[1])
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(f"{self._directory}/{SOCKET}")
        listening.listen(16)

        def kills(statement: str, pid: int) -> bool:
            statements, commits = self.seen
            statements, commits = statements + 1, commits + (statement == "commit")
            self._counts[:] = struct.pack("2q", statements, commits)
            if die_at != (commits if sent and statement == "commit" else 0 if sent else statements):
                return False
            log.add(killed=f"{'commit' if sent else 'statement'} {die_at}: {statement}", process=process)
            os.kill(pid, signal.SIGKILL)
            return True

        self._child = Child(_carry, listening, f"{server}/{SOCKET}", kills, sent)
        listening.close()

    @property
    def seen(self) -> tuple[int, int]:
        """How many statements and how many commits there were."""
        statements, commits = struct.unpack("2q", self._counts[:])
        return statements, commits

    def close(self) -> None:
        self._child.kill()
        Path(self._directory, SOCKET).unlink()
        os.rmdir(self._directory)


class Frontend:
    """What a client says to the server, message by message."""

    def __init__(self) -> None:
        self._left = b""
        self._has_begun = False
        self._statements: dict[bytes, str] = {}
        self._portals: dict[bytes, str] = {}

    def messages(self, data: bytes) -> Iterator[tuple[bytes, str]]:
        """Whole messages, each with the statement that it has executed; empty where it does no such thing."""
        self._left += data
        while len(self._left) >= (5 if self._has_begun else 4):
            start = 1 if self._has_begun else 0
            [length] = struct.unpack("!i", self._left[start : start + 4])
            if len(self._left) < start + length:
                return
            message, self._left = self._left[: start + length], self._left[start + length :]
            yield message, self._statement(message) if self._has_begun else ""
            self._has_begun = True

    def _statement(self, message: bytes) -> str:
        kind, body = message[:1], message[5:]
        texts = body.split(b"\0", 2)
        if kind == b"P":
            self._statements[texts[0]] = texts[1].decode()
        elif kind == b"B":
            self._portals[texts[0]] = self._statements.get(texts[1], "?")
        elif kind == b"E":
            return self._portals.get(texts[0], "?")
        elif kind == b"Q":
            return texts[0].decode()
        return ""


Kills = Callable[[str, int], bool]
"""Told of a statement and of the process it comes from: whether it killed that."""


def _carry(listening: socket.socket, server: str, kills: Kills, sent: bool) -> None:
    """Carry everything both ways. Ended from outside."""
    waiting = selectors.DefaultSelector()
    waiting.register(listening, selectors.EVENT_READ)
    others: dict[socket.socket, socket.socket] = {}
    frontends: dict[socket.socket, Frontend] = {}
    while True:
        for key, _ in waiting.select():
            end = key.fileobj
            assert isinstance(end, socket.socket)
            if end is listening:
                client, other = listening.accept()[0], socket.socket(socket.AF_UNIX)
                other.connect(server)
                others |= {client: other, other: client}
                frontends[client] = Frontend()
                for one in (client, other):
                    waiting.register(one, selectors.EVENT_READ)
            elif end in others and not _carried(end, others[end], frontends.get(end), kills, sent):
                for one in (end, others[end]):
                    waiting.unregister(one)
                    one.close()
                    del others[one]


def _carried(end: socket.socket, other: socket.socket, frontend: Frontend | None, kills: Kills, sent: bool) -> bool:
    """Carry what one end says to the other; whether it is still there."""
    try:
        data = end.recv(65_536)
        if frontend is None:
            other.sendall(data)
            return bool(data)
        for message, statement in frontend.messages(data):
            if sent:
                other.sendall(message)
            if statement and is_change(statement) and kills(" ".join(statement.split())[:60], _peer(end)):
                return False  # and nothing it said after that is passed on
            if not sent:
                other.sendall(message)
    except OSError:
        return False
    return bool(data)


def _peer(end: socket.socket) -> int:
    if sys.platform == "darwin":
        return end.getsockopt(0, 2)  # SOL_LOCAL, LOCAL_PEERPID
    pid, _, _ = struct.unpack("3i", end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return pid
