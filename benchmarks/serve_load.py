"""Load for a real `signoff serve`: requests that arrive, people who vote over HTTP, and watchers of its events.

It has a client of its own, of a few lines: what is measured is the server, and another client's work would be in it.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from signoff.broker import Broker
from signoff.core.access import AccessKind
from signoff.core.call import Call
from signoff.core.request import ApprovalRequest
from signoff.core.verdict import Effect, Requirement, Verdict
from signoff.store.sqlite import SqliteStore

PATIENCE = 300.0
"""Seconds until something that should happen is given up."""
COMMAND = (sys.executable, "-c", "from signoff.cli.main import main; main()")
SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}, "amount": {"type": "number"}}}


class HttpFailed(Exception):
    """The connection broke, or the server is not there."""


class HttpClient:
    """One connection that is kept, and made again when it broke."""

    def __init__(self, port: int, token: str) -> None:
        self._port, self._token = port, token
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def request(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, bytes]:
        """Status and body."""
        try:
            async with asyncio.timeout(PATIENCE):
                return await self._request(method, path, body, headers)
        except (OSError, EOFError, ValueError, asyncio.IncompleteReadError) as error:
            self.close()
            raise HttpFailed(f"{method} {path}") from error

    async def _request(self, method: str, path: str, body: Any, headers: dict[str, str]) -> tuple[int, bytes]:
        reader, writer = await self.connected()
        sent = b"" if body is None else json.dumps(body).encode()
        self.write_head(writer, method, path, {"Content-Length": str(len(sent)), **headers}, bool(sent))
        writer.write(sent)
        await writer.drain()
        status, told = await read_head(reader)
        data = await reader.readexactly(int(told.get("content-length", "0")))
        if told.get("connection", "").lower() == "close":
            self.close()
        return status, data

    async def connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        return self._streams

    def write_head(
        self, writer: asyncio.StreamWriter, method: str, path: str, headers: dict[str, str], is_json: bool
    ) -> None:
        lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{self._port}", f"Authorization: Bearer {self._token}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        lines += ["Content-Type: application/json"] if is_json else []
        writer.write(("\r\n".join(lines) + "\r\n\r\n").encode())

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def read_head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    fields = (line.partition(":") for line in head[1:] if line)
    return int(head[0].split()[1]), {name.strip().lower(): value.strip() for name, _, value in fields}


@dataclass
class Watcher:
    """Follows the events of a server, and comes back with the last number it saw whenever the connection breaks."""

    port: int
    token: str
    seen: list[int] = field(default_factory=list[int])
    """The number of each event, as they came."""
    asked: dict[str, float] = field(default_factory=dict[str, float])
    """When each request was told of, on the clock of this process."""
    connections: int = 0
    problems: list[str] = field(default_factory=list[str])
    began: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            client = HttpClient(self.port, self.token)
            try:
                with suppress(OSError, EOFError, ValueError, asyncio.IncompleteReadError):
                    await self._follow(client)
            finally:
                client.close()
            await asyncio.sleep(0.05)

    async def _follow(self, client: HttpClient) -> None:
        reader, writer = await client.connected()
        last = {"Last-Event-ID": str(self.seen[-1])} if self.seen else {}
        client.write_head(writer, "GET", "/api/v1/events", {"Accept": "text/event-stream", **last}, False)
        status, told = await read_head(reader)
        if status != 200:
            self.problems.append(f"status {status}")
            return
        self.connections += 1
        async for block in _blocks(reader, chunked=told.get("transfer-encoding", "") == "chunked"):
            self._event(block)

    def _event(self, block: str) -> None:
        fields = dict(line.partition(": ")[::2] for line in block.splitlines() if not line.startswith(":"))
        name = fields.get("event", "")
        if name == "reset":
            self.problems.append("reset")
        if name == "begin":
            if not self.seen:
                self.seen.append(int(fields["id"]))
            self.began.set()
        elif not name and "id" in fields:
            data = json.loads(fields["data"])
            self.seen.append(data["seq"])
            if data["kind"] == "asked":
                self.asked[data["request"]] = time.perf_counter()

    @property
    def gaps(self) -> list[tuple[int, int]]:
        """Where a number is not the one after that before it: something was lost, or told twice."""
        return [(one, two) for one, two in zip(self.seen, self.seen[1:], strict=False) if two != one + 1]


async def _blocks(reader: asyncio.StreamReader, *, chunked: bool) -> AsyncIterator[str]:
    buffer = b""
    while True:
        if chunked:
            size = int((await reader.readuntil(b"\r\n")).strip() or b"0", 16)
            data = await reader.readexactly(size + 2)
            if not size:
                return
            buffer += data[:-2]
        else:
            data = await reader.read(65_536)
            if not data:
                return
            buffer += data
        *whole, buffer = buffer.split(b"\n\n")
        for block in whole:
            yield block.decode()


class ServeProcess:
    """`signoff serve` over a store, at a port that stays the same when it is started again."""

    def __init__(self, directory: Path, store: str, *options: str, environment: dict[str, str] | None = None) -> None:
        self.directory, self.store = directory, store
        self._options = options
        self._environment = environment or {}
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None
        self._log = directory / "serve.log"

    async def start(self) -> None:
        """Start it; returns once clients are answered."""
        process = self._process = self._started()
        end = time.monotonic() + PATIENCE
        while not await self._is_ready():
            if process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"the server did not start:\n{self.log[-2_000:]}")
            await asyncio.sleep(0.02)

    def _started(self) -> subprocess.Popen[bytes]:
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [*COMMAND, "serve", "--port", str(self.port), "--log", "json", *self._options],
                cwd=self.directory,
                env={**os.environ, "SIGNOFF_STORE": self.store, **self._environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    @property
    def log(self) -> str:
        return self._log.read_text(encoding="utf-8")

    async def _is_ready(self) -> bool:
        client = HttpClient(self.port, "none")
        try:
            return (await client.request("GET", "/readyz"))[0] == 200
        except HttpFailed:
            return False
        finally:
            client.close()

    def kill(self) -> None:
        """Pull the plug."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> int:
        """End it politely; its exit code."""
        assert self._process is not None
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        return self._process.wait(PATIENCE)

    @property
    def megabytes(self) -> float:
        """What it holds in memory."""
        assert self._process is not None
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


class Office:
    """The other side of the server: who asks, from a process of its own, and who votes."""

    def __init__(self, broker: Broker, port: int, token: str) -> None:
        self.broker = broker
        self.port, self.token = port, token
        self.asked_at: dict[str, float] = {}
        self.votes: list[float] = []
        """Seconds that each vote took."""
        self._number = 0

    async def ask(self, count: int = 1) -> Sequence[ApprovalRequest]:
        """Questions arrive."""
        began = time.perf_counter()
        opened = await self.broker.open([self._question() for _ in range(count)])
        self.asked_at.update({one.id: began for one in opened})
        return opened

    def _question(self) -> ApprovalRequest:
        self._number += 1
        args = {"to": f"person-{self._number}", "amount": self._number}
        name = uuid4().hex
        call = Call(tool="pay", args=args, call_id=name, run_id=name, worker=("till",))
        return ApprovalRequest(
            tool_call_id=name,
            tool_name="pay",
            args=args,
            call=call,
            schema=SCHEMA,
            verdict=Verdict(effect=Effect.ASK, requirement=Requirement()),
        )

    async def vote(self, client: HttpClient, request: ApprovalRequest, *, named: bool = True) -> float:
        """Answer one request; seconds that it took. A server that is gone is asked again, under the same name."""
        body = {"decision": "approve" if len(self.votes) % 2 else "deny", "args_digest": request.args_digest}
        headers = {"Idempotency-Key": uuid4().hex} if named else {}
        began = time.perf_counter()
        while True:
            with suppress(HttpFailed):
                path = f"/api/v1/requests/{request.id}/votes"
                status, said = await client.request("POST", path, body, **headers)
                # It was taken before the server died, and what was answered then is not known any longer.
                if status == 200 or (status == 409 and b"already-settled" in said):
                    self.votes.append(time.perf_counter() - began)
                    return self.votes[-1]
                if status != 503:
                    raise RuntimeError(f"a vote was answered with {status}: {said[:500]!r}")
            await asyncio.sleep(0.05)

    async def vote_all(self, requests: asyncio.Queue[ApprovalRequest | None]) -> None:
        """Answer whatever comes, until there is no more."""
        client = HttpClient(self.port, self.token)
        try:
            while (request := await requests.get()) is not None:
                await self.vote(client, request)
        finally:
            client.close()


async def token_for(broker: Broker, holder: str) -> str:
    """A key for a person, as `signoff tokens` makes it."""
    return (await broker.access.issue(AccessKind.TOKEN, holder, by=holder, lasts=None, label="load"))[1]


@asynccontextmanager
async def office(server: ServeProcess, holder: str) -> AsyncIterator[Office]:
    """Somebody who asks and votes, on the server's store."""
    store = SqliteStore(Path(server.store.partition(":")[2]))
    broker = Broker(store)
    try:
        yield Office(broker, server.port, await token_for(broker, holder))
    finally:
        broker.watch.close()
        store.close()


async def until(holds: Callable[[], bool], what: str, patience: float = PATIENCE) -> None:
    end = time.monotonic() + patience
    while not holds():
        if time.monotonic() > end:
            raise RuntimeError(f"waited {patience} s until {what}")
        await asyncio.sleep(0.02)


async def under_load(
    server: ServeProcess,
    made: Office,
    *,
    waiting: int,
    watchers: int,
    arriving: int,
    voters: int,
    disturb: Callable[[int], Any] | None = None,
) -> list[Watcher]:
    """So many wait, so many watch, so many arrive and are decided; `disturb` is told each time one has been.

    Returns the watchers once each has seen everything, or raises.
    """
    await made.ask(waiting)
    watching = [Watcher(server.port, made.token) for _ in range(watchers)]
    tasks = [asyncio.create_task(one.run()) for one in watching]
    try:
        await asyncio.gather(*(asyncio.wait_for(one.began.wait(), PATIENCE) for one in watching))
        queue: asyncio.Queue[ApprovalRequest | None] = asyncio.Queue(50)
        voting = [asyncio.create_task(made.vote_all(queue)) for _ in range(voters)]
        for number in range(arriving):
            [request] = await made.ask()
            await queue.put(request)
            if disturb is not None:
                await disturb(number)
        for _ in voting:
            await queue.put(None)
        await asyncio.gather(*voting)
        head = await made.broker.store.read(lambda tx: tx.record.head()[0])
        await until(lambda: all(one.seen[-1] >= head for one in watching), "everybody has seen everything")
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0.01)  # what was closed hears of it
    return watching
