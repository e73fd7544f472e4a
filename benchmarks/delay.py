"""What one large message delays everybody else: a megabyte through every door, while another client asks for little."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from getpass import getuser
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

from benchmarks.bench import Bench
from benchmarks.delay_doors import DOORS
from benchmarks.measure import Effort
from benchmarks.report import Report, Row, Table, Target
from benchmarks.serve_load import HttpClient, Office, ServeProcess, office, read_head
from signoff.core.strict_json import MOST_PARTS

MOST_DELAY = 50.0
"""Milliseconds."""
SIZE = 1_000_000
PARTS = MOST_PARTS * 9 // 10
"""Of what has many parts: more are refused."""
EVERY = 0.002
"""Seconds between two questions of the other client."""
POLICY = """\
policy:
  - {deny: {path: "**/.env"}}
  - {allow: {tool: read_file, path: "src/**"}}
  - {allow: {tool: query, sql: read-only}}
  - {allow: {command: read-only}}
  - {allow: {tool: fetch, url: "https://example.com/**"}}
  - {allow: {tool: pay, amount: {"<=": 5}}}
  - {allow: {tool: mail, recipients: {domains: [a.example]}}}
  - {allow: {tool: look}}
  - {ask: "*"}
"""
CALLS: Mapping[str, Callable[[int], tuple[str, dict[str, Any]]]] = {
    "a plain text": lambda size: ("note", {"text": "a " * (size // 2)}),
    "a path": lambda size: ("read_file", {"path": "a/" * (size // 2)}),
    "a path from home": lambda size: ("read_file", {"path": "~/" * (size // 2)}),
    "many paths": lambda size: ("read_file", {"paths": _many("a/b", size)}),
    "a command": lambda size: ("shell", {"command": "ls;" * (size // 3)}),
    "SQL": lambda size: ("query", {"sql": "/*" * (size // 2)}),
    "an address": lambda size: ("fetch", {"url": "https://a." * (size // 10)}),
    "many recipients": lambda size: ("mail", {"to": [f"{name}@a.example" for name in _many("a", size * 7 // 8)]}),
    "marks": lambda size: ("note", {"text": "a" + "\u0301\u0316" * (size // 4)}),
    "hidden characters": lambda size: ("note", {"text": "\u202e" * (size // 3)}),
    "credentials": lambda size: ("note", {"text": ("ghp_" + "a1B2" * 6 + " ") * (size // 29)}),
    "many names": lambda size: ("note", dict.fromkeys(_many("a: b", size)[: PARTS // 2], "v")),
    "many numbers": lambda size: ("note", {"numbers": [10.0 ** (size // PARTS % 300)] * PARTS}),
    "escapes": lambda size: ("note", {"text": "%41\\x41" * (size // 8)}),
    "base64": lambda size: ("note", {"text": "ab+/" * (size // 5) + "\n"}),
    "too many parts": lambda size: ("note", {"numbers": [1] * (size // 3)}),
}


def _many(begin: str, size: int) -> list[str]:
    """As many different texts as may be sent, which together have so many characters."""
    return [f"{begin}{number:0{max(1, size // PARTS - len(begin) - 4)}}" for number in range(PARTS)]


def measure(effort: Effort, bench: Bench) -> Report:
    about = (
        f"Real processes on SQLite. One client sends {effort.delay_size:,} bytes in one message; meanwhile another "
        "asks for little, over and over: for a list of one request, for an allowed call. Given is the longest that one "
        "of its questions took."
    )
    if missing := [name for name in ("starlette", "uvicorn", "jinja2", "mcp") if find_spec(name) is None]:
        note = f"left out: {', '.join(missing)} is not installed; the extras web and mcp bring it"
        return Report("delay", "One large message", about, (), notes=(*bench.notes, note))
    with asyncio.Runner() as runner:
        directory = bench.disk.directory / "delay"
        directory.mkdir()
        (directory / "signoff.yaml").write_text(POLICY, encoding="utf-8")
        holder = os.environ.get("SIGNOFF_AS") or getuser()
        server = ServeProcess(directory, f"sqlite:{directory / 'approvals.db'}", environment={"SIGNOFF_AS": holder})
        runner.run(server.start())
        try:
            rows = runner.run(_rows(effort, server, holder))
        finally:
            server.stop()
        doors = runner.run(_doors(effort, directory))
    rows = [Row(row.name, (*row.cells, *doors[row.name])) for row in rows]
    columns = (
        "submitted (AAP), ms",
        "explained (API), ms",
        "its card (API), ms",
        *(f"{name}, ms" for name in DOORS),
    )
    longest = max(cell for row in rows for cell in row.cells if isinstance(cell, float))
    return Report(
        name="delay",
        title="One large message",
        about=about,
        tables=(Table("the longest wait of another client", columns, tuple(rows)),),
        targets=(Target("the longest wait of another client, ms", longest, MOST_DELAY),),
        notes=bench.notes,
    )


async def _rows(effort: Effort, server: ServeProcess, holder: str) -> list[Row]:
    async with office(server, holder) as made:
        secret = f"soi_{secrets.token_urlsafe(32)}"
        told = {"owner": holder, "by": holder, "lasts": None}
        await made.broker.aap.provision(str(uuid4()), "sender", secret, **told, is_here=True)
        client = HttpClient(made.port, made.token)
        delay = partial(_delay, lambda: client.request("GET", "/api/v1/requests?limit=1"))
        nothing = await delay(lambda: asyncio.sleep(0.5))
        rows = [Row("nothing", (nothing, nothing, nothing))]
        for name, call in CALLS.items():
            tool, args = call(effort.delay_size * 9 // 10)
            asked = {"tool": tool, "arguments": args, "timeout": "1h"}
            submitted = await delay(_sending(made.port, secret, "/aap/v1/requests", asked))
            explained = await delay(
                _sending(made.port, made.token, "/api/v1/policy/explain", {"tool": tool, "args": args})
            )
            shown = [await delay(_reading(made, one.id)) for one in await made.broker.pending()]
            rows.append(Row(name, (submitted, explained, max(shown, default=None))))
            for one in await made.broker.pending():
                await made.broker.cancel(one.id, "measured")
        client.close()
    return rows


def _sending(port: int, token: str, path: str, asked: object) -> Callable[[], Awaitable[object]]:
    body = json.dumps(asked, ensure_ascii=False).encode()  # before the clock runs: this process measures, too

    async def send() -> None:
        client = HttpClient(port, token)
        reader, writer = await client.connected()
        named = {"Content-Length": str(len(body)), "Idempotency-Key": uuid4().hex}
        client.write_head(writer, "POST", path, named, True)
        writer.write(body)
        await writer.drain()
        status, said = await read_head(reader)
        await reader.readexactly(int(said.get("content-length", "0")))
        client.close()
        assert status in (200, 201, 413), status

    return send


def _reading(made: Office, request: str) -> Callable[[], Awaitable[object]]:
    async def read() -> None:
        client = HttpClient(made.port, made.token)
        await client.request("GET", f"/api/v1/requests/{request}")
        client.close()

    return read


async def _doors(effort: Effort, place: Path) -> dict[str, list[float]]:
    """The longest waits at the other doors, for each kind of call."""
    waits: dict[str, list[float]] = {name: [] for name in ("nothing", *CALLS)}
    tools = sorted({call(10)[0] for call in CALLS.values()})
    for opened in DOORS.values():
        async with opened(place, tools) as door:
            for _ in range(3):
                await door.ask()
            waits["nothing"].append(await _delay(door.ask, lambda: asyncio.sleep(0.5)))
            for name, call in CALLS.items():
                waits[name].append(await _delay(door.ask, door.sending(*call(effort.delay_size * 9 // 10))))
    return waits


async def _delay(ask: Callable[[], Awaitable[object]], work: Callable[[], Awaitable[object]]) -> float:
    """The longest that a question of another client took while some work was done, in milliseconds."""
    waits = list[float]()

    async def asks() -> None:
        while True:
            began = time.perf_counter()
            await ask()
            waits.append(time.perf_counter() - began)
            await asyncio.sleep(EVERY)

    other = asyncio.create_task(asks())
    try:
        await asyncio.sleep(0.05)
        waits.clear()
        await work()
        seen = len(waits)
        while len(waits) == seen and not other.done():  # what was asked before the work ended counts, too
            await asyncio.sleep(EVERY)
    finally:
        other.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await other
    return max(waits) * 1e3
