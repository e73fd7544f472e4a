"""The doors of other programs, as real processes: the MCP proxy over HTTP and on a pipe, the helper of the hooks."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks.serve_load import COMMAND, HttpClient, read_head
from signoff.wiring import hook_launcher

LOOK = "look"
"""A tool that every policy here allows."""
WAIT = 1.0
"""Seconds for which a client waits for people, who are not there."""
_PROTOCOL = "2025-06-18"
_LONGEST_LINE = 16 * 1024 * 1024


@dataclass(frozen=True)
class Door:
    """Where clients of another program come in."""

    ask: Callable[[], Awaitable[object]]
    """One small question of a client."""
    sending: Callable[[str, dict[str, Any]], Callable[[], Awaitable[object]]]
    """What sends a call of another client, made before the clock runs."""


def _proxy(place: Path, tools: list[str], *options: str) -> list[str]:
    upstream = [sys.executable, str(Path(__file__).with_name("offers_tools.py")), LOOK, *tools]
    return [*COMMAND, "mcp", "proxy", "--wait", f"{WAIT:g}s", "--project", str(place), *options, "--", *upstream]


def _message(number: int, method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}, ensure_ascii=False).encode()


def _hello() -> bytes:
    client = {"name": "bench", "version": "1"}
    return _message(0, "initialize", protocolVersion=_PROTOCOL, capabilities={}, clientInfo=client)


_READY = json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}).encode()


@asynccontextmanager
async def proxy_over_http(place: Path, tools: list[str]) -> AsyncGenerator[Door]:
    """Two sessions: one asks, the other sends."""
    token = place / "token"
    token.write_text(secrets.token_urlsafe(32), encoding="ascii")
    token.chmod(0o600)
    process = await asyncio.create_subprocess_exec(
        *_proxy(place, tools, "--http", "0", "--token-file", str(token)), cwd=place, stderr=asyncio.subprocess.PIPE
    )
    try:
        assert process.stderr is not None
        url = (await process.stderr.readline()).decode().strip()
        port = int(url.rpartition(":")[2].partition("/")[0])
        asking, sending = [await _Session.opened(port, token.read_text()) for _ in range(2)]
        look = _message(1, "tools/call", name=LOOK, arguments={})
        yield Door(
            lambda: asking.call(look),
            lambda tool, args: partial(sending.call_once, _message(1, "tools/call", name=tool, arguments=args)),
        )
        asking.close()
        sending.close()
    finally:
        process.kill()
        await process.communicate()


class _Session:
    def __init__(self, port: int, token: str) -> None:
        self._client = HttpClient(port, token)
        self._named = {"Accept": "application/json, text/event-stream"}

    @classmethod
    async def opened(cls, port: int, token: str) -> _Session:
        session = cls(port, token)
        told = await session.call(_hello())
        session._named |= {"Mcp-Session-Id": told["mcp-session-id"], "Mcp-Protocol-Version": _PROTOCOL}
        await session.call(_READY)
        return session

    async def call(self, body: bytes) -> dict[str, str]:
        reader, writer = await self._client.connected()
        self._client.write_head(writer, "POST", "/mcp", {**self._named, "Content-Length": str(len(body))}, True)
        writer.write(body)
        await writer.drain()
        status, told = await read_head(reader)
        if "content-length" in told:
            await reader.readexactly(int(told["content-length"]))
        else:
            await reader.readuntil(b"\r\n0\r\n\r\n")
        assert status in (200, 202, 400), status
        return told

    def close(self) -> None:
        self._client.close()

    async def call_once(self, body: bytes) -> None:
        """As `call`, on a connection of its own: the next call may come later than the server keeps one."""
        self._client.close()
        await self.call(body)


@asynccontextmanager
async def proxy_on_a_pipe(place: Path, tools: list[str]) -> AsyncGenerator[Door]:
    """There is one client, which has several calls at once."""
    process = await asyncio.create_subprocess_exec(
        *_proxy(place, tools),
        cwd=place,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=_LONGEST_LINE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    writer, reader = process.stdin, process.stdout
    answers: dict[int, asyncio.Future[None]] = {}
    numbers = count(1)

    async def read() -> None:
        while line := await reader.readline():
            told = json.loads(line)
            if (waits := answers.pop(told.get("id", -1), None)) is not None:
                waits.set_result(None)

    async def asked(number: int, body: bytes) -> None:
        answers[number] = asyncio.get_running_loop().create_future()
        answer = answers[number]
        writer.write(body + b"\n")
        await writer.drain()
        await answer

    def sending(tool: str, args: dict[str, Any]) -> Callable[[], Awaitable[object]]:
        number = next(numbers)
        body = _message(number, "tools/call", name=tool, arguments=args)
        return lambda: asked(number, body)

    reads = asyncio.create_task(read())
    try:
        await asked(0, _hello())
        writer.write(_READY + b"\n")
        yield Door(lambda: sending(LOOK, {})(), sending)
    finally:
        process.kill()
        await process.wait()
        await reads
        writer.close()


@asynccontextmanager
async def helper_of_hooks(place: Path, tools: list[str]) -> AsyncGenerator[Door]:
    """What the hooks of several sessions ask, as the hook itself does: without the start of its process."""
    runs = place / "run"
    runs.mkdir(mode=0o700, exist_ok=True)
    environment = {"PATH": os.environ["PATH"], "HOME": str(place), "XDG_RUNTIME_DIR": str(runs)}
    seen = {"HOME": str(place), "XDG_RUNTIME_DIR": str(runs)}
    command = [sys.executable, "-I", "-m", "signoff.wiring.hook_resident"]
    process = await asyncio.create_subprocess_exec(*command, env=environment)
    path = runs / "signoff" / "hook" / "socket"
    while not path.exists():
        assert process.returncode is None
        await asyncio.sleep(0.01)

    def sending(tool: str, args: dict[str, Any]) -> Callable[[], Awaitable[object]]:
        event = {"session_id": "bench", "cwd": str(place), "hook_event_name": "PreToolUse", "transcript_path": ""}
        event |= {"tool_name": tool, "tool_input": args, "tool_use_id": secrets.token_hex(8)}
        given = {"agent": "claude-code", "project": str(place), "patience": WAIT, "caller": os.getpid()}
        given |= {"store": "", "server": "", "token-file": "", "attempt": secrets.token_hex(16)}
        head = {"stamp": hook_launcher.code_stamp(), "environment": seen, "projects": {}, "given": given}
        parts = json.dumps(head).encode(), json.dumps(event, ensure_ascii=False).encode()

        async def send() -> None:
            reader, writer = await asyncio.open_unix_connection(str(path))
            for part in parts:
                writer.write(len(part).to_bytes(4, "big") + part)
            await writer.drain()
            answer = await reader.read()
            writer.close()
            await writer.wait_closed()
            assert json.loads(answer)["code"] in (0, 2), answer

        return send

    try:
        yield Door(lambda: sending("Bash", {"command": "git status"})(), sending)
    finally:
        process.kill()
        await process.wait()


DOORS: dict[str, Callable[[Path, list[str]], AbstractAsyncContextManager[Door]]] = {
    "MCP proxy, HTTP": proxy_over_http,
    "MCP proxy, pipe": proxy_on_a_pipe,
    "hooks": helper_of_hooks,
}
