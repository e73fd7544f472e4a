"""The socket that the server listens at: clients that are slow, and more of them than there is room for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from signoff.server import listener
from signoff.server.listener import bound, listener_for, stopped

GET = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 9\r\n\r\n"


async def echo(scope: Any, receive: Any, send: Any) -> None:
    body = await Request(scope, receive).body()
    await PlainTextResponse(f"got {len(body)}")(scope, receive, send)


@asynccontextmanager
async def connected(count: int = 1) -> AsyncGenerator[list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]:
    """Connections to a server."""
    with bound("127.0.0.1", 0) as made:
        serving = listener_for(echo)
        task = asyncio.create_task(serving.serve(sockets=[made]))
        clients = [await asyncio.open_connection(*made.getsockname()[:2]) for _ in range(count)]
        try:
            async with asyncio.timeout(60):
                yield clients
        finally:
            for _, writer in clients:
                writer.close()
            await stopped(serving, task)


async def is_hung_up_on(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read(1000) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("sent", [b"", GET[:20], GET[:-2], POST + b"four"])
async def test_who_does_not_send_a_whole_request_is_hung_up_on(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    monkeypatch.setattr(listener, "HEADERS_TAKE", 0.05)
    monkeypatch.setattr(listener, "BODY_TAKES", 0.1)
    async with connected() as [(reader, writer)]:
        writer.write(sent)
        assert await is_hung_up_on(reader)


async def test_the_second_request_of_a_connection_has_as_long_as_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "HEADERS_TAKE", 0.3)
    async with connected() as [(reader, writer)]:
        for _ in range(3):
            writer.write(GET)
            assert b"got 0" in await reader.read(1000)
        writer.write(GET[:20])
        assert await is_hung_up_on(reader)


async def test_more_clients_than_there_is_room_for_are_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "MOST_CONNECTIONS", 3)
    async with connected(3) as clients:
        for reader, writer in clients[:1]:
            writer.write(GET)
            assert (await reader.readline()).startswith(b"HTTP/1.1 503")
