"""The socket that the server listens at: clients that are slow, and more of them than there is room for."""

from __future__ import annotations

import asyncio
import resource
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from signoff.server import listener
from signoff.server.listener import MOST_CONNECTIONS, bound, listener_for, stopped
from signoff.server.security_headers import SECURITY

GET = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 9\r\n\r\n"


async def echo(scope: Any, receive: Any, send: Any) -> None:
    body = await Request(scope, receive).body()
    await PlainTextResponse(f"got {len(body)}")(scope, receive, send)


@asynccontextmanager
async def connected(
    count: int = 1, app: Any = echo
) -> AsyncGenerator[list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]:
    """Connections to a server."""
    with bound("127.0.0.1", 0) as made:
        serving = listener_for(app)
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
            said = await reader.readuntil(b"\r\n\r\n")
            assert said.startswith(b"HTTP/1.1 503") and b"\r\nx-frame-options: DENY\r\n" in said


async def test_connections_without_a_request_make_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "MOST_CONNECTIONS", 4)
    async with connected(4) as clients:
        address = clients[0][1].get_extra_info("peername")
        for reader, _ in clients[:2]:
            assert await is_hung_up_on(reader), "the first that came"
        reader, writer = await asyncio.open_connection(*address)
        writer.write(GET)
        assert b"got 0" in await reader.read(1000)
        writer.close()


async def test_whoever_sends_the_next_request_too_early_is_answered_once() -> None:
    async with connected() as [(reader, writer)]:
        writer.write(GET * 50)
        assert (await reader.read()).count(b"HTTP/1.1 200") == 1, "and the connection is closed"


async def test_whoever_reads_no_response_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "BODY_TAKES", 0.3)
    over = asyncio.Event()

    async def endless(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(100):
            await send({"type": "http.response.body", "body": bytes(1_000_000), "more_body": True})
        over.set()

    async with connected(app=endless) as [(_, writer)]:
        writer.write(GET)
        await over.wait()


def test_there_are_fewer_connections_than_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = [(256, 1024)]
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits[-1])
    monkeypatch.setattr(resource, "setrlimit", lambda _, wanted: limits.append(wanted))
    assert listener_for(echo).config.limit_concurrency == 512
    assert limits[-1] == (1024, 1024)
    limits.append((256, 1_000_000))
    assert listener_for(echo).config.limit_concurrency == MOST_CONNECTIONS < limits[-1][0]


SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: here\r\n\r\n"
CHUNKED = b"0\r\n\r\n"


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 5\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: chunked\r\nContent-Length: 5",
        b"Content-Length: 5\r\nTransfer-Encoding:\tchunked",
        b"content-length: 5\r\ntransfer-encoding: Chunked",
        b"Content-Length: 0\r\nTransfer-Encoding: chunked",
        b"Content-Length: 5\r\nTransfer-Encoding: identity, chunked",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        b"Content-Length: 5\r\nContent-Length: 6",
        b"Content-Length: 5, 6",
        b"Content-Length: +5",
        b"Transfer-Encoding: xchunked",
        b"Transfer-Encoding : chunked",
    ],
)
async def test_a_request_that_ends_in_two_places_is_refused_and_nothing_after_it_is_read(head: bytes) -> None:
    async with connected() as [(reader, writer)]:
        writer.write(b"POST / HTTP/1.1\r\nHost: here\r\n" + head + b"\r\n\r\n" + CHUNKED + SMUGGLED)
        said = await reader.read()  # until the connection is closed
    assert said.startswith((b"HTTP/1.1 400", b"HTTP/1.1 501")) and b"\r\nx-frame-options: DENY" in said, said
    assert said.count(b"HTTP/1.1") == 1, "the next request is not answered"


async def test_chunks_in_a_version_without_them_are_refused_too() -> None:
    async with connected() as [(reader, writer)]:
        writer.write(b"POST / HTTP/1.0\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKED + SMUGGLED)
        said = await reader.read()
    assert said.count(b"HTTP/1.1") == 1 and b" 400 " in said


async def test_what_is_answered_to_a_request_that_cannot_be_read_has_our_headers() -> None:
    async with connected() as [(reader, writer)]:
        writer.write(b"no request at all\r\n\r\n")
        said = await reader.read()
    head, _, body = said.partition(b"\r\n\r\n")
    assert (head.partition(b"\r\n")[0], body) == (b"HTTP/1.1 400 Bad Request", b"Invalid HTTP request received.")
    for name, value in SECURITY.items():
        assert f"\r\n{name}: {value}".encode() in head, name
    assert b"\r\ncache-control: no-store" in head and b"server:" not in head


async def test_chunks_alone_are_fine_and_the_connection_stays() -> None:
    async with connected() as [(reader, writer)]:
        for _ in range(2):
            writer.write(b"POST / HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n" + CHUNKED)
            assert b"got 3" in await reader.read(1000)
