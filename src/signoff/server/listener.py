"""The listening socket of the server, and the uvicorn server on it."""

from __future__ import annotations

import asyncio
import errno
import http.client
import json
import socket
from collections.abc import Generator
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from time import monotonic
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from signoff.core.moment import moment_text
from signoff.errors import WrongUse
from signoff.server.sound_framing import SoundFraming

GRACE = 3
"""Seconds that clients have to receive their responses when the server stops (graceful shutdown)."""
BACKLOG = 512
MOST_CONNECTIONS = 2_000
"""Concurrent connections; more get 503."""
HEADERS_TAKE, BODY_TAKES = 10.0, 30.0
"""Timeouts in seconds for the headers and for the whole request. Then the connection is closed."""


class HttpListener(uvicorn.Server):
    """A server that is stopped by its caller, not by signals. It closes connections of slow clients."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._waiting: dict[Any, tuple[object, float]] = {}
        """Connections without a complete request: the request before it, and since when."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def on_tick(self, counter: int) -> bool:
        self._hang_up_on_slow(monotonic())
        return await super().on_tick(counter)

    def _hang_up_on_slow(self, now: float) -> None:
        waiting: dict[Any, tuple[object, float]] = {}
        for connection in self.server_state.connections:
            found: Any = connection
            request: Any = found.cycle  # the last request with complete headers
            has_head = request is not None and not request.response_complete
            if request is not None and has_head and not request.more_body:
                continue
            before, since = self._waiting.get(found, (request, now))
            waiting[found] = request, (since if before is request else now)
            if now - waiting[found][1] >= (BODY_TAKES if has_head else HEADERS_TAKE):
                found.transport.abort()
        self._waiting = waiting


def listener_for(app: ASGIApp, *, tls: tuple[str, str] | None = None) -> HttpListener:
    """Return a server for this application. `tls`: files of a certificate and its key."""
    return HttpListener(
        uvicorn.Config(
            SoundFraming(app),
            http="h11",  # whatever else is installed: this is what the tests attack
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            lifespan="off",
            ws="none",
            timeout_graceful_shutdown=GRACE,
            limit_concurrency=MOST_CONNECTIONS,
            ssl_certfile=tls[0] if tls else None,
            ssl_keyfile=tls[1] if tls else None,
        )
    )


def bound(host: str, port: int) -> socket.socket:
    """Bind a socket and listen. Raises `WrongUse` on failure, which says who uses an address that is taken."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # With an explicit protocol number asyncio sets TCP_NODELAY; otherwise small responses take 40 ms longer.
        made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind((host, port))
            made.listen(BACKLOG)  # a port in use is refused here at the latest
        except BaseException:
            made.close()
            raise
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise WrongUse(f"{host}:{port} is in use: {_who(host, port)}\n  Choose another port with --port") from error
        raise WrongUse(f"cannot listen at {host}:{port}: {error.strerror or error}") from error
    return made


def url_of(made: socket.socket, *, tls: bool = False) -> str:
    """Return the URL of the server, for people."""
    host, port = made.getsockname()[:2]
    return f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


def _who(host: str, port: int) -> str:
    """Return which program listens there, as far as it says."""
    with (
        closing(http.client.HTTPConnection(host, port, timeout=1)) as connection,
        suppress(OSError, ValueError, http.client.HTTPException),
    ):
        connection.request("GET", "/healthz")
        said: object = json.loads(connection.getresponse().read(10_000))
        match said:
            case {"service": "signoff", "pid": int(pid), "since": str(since)}:
                # Parsed as a time, because any program may listen there and send anything.
                return f"a signoff server runs there, process {pid}, since {moment_text(datetime.fromisoformat(since))}"
            case {"service": "signoff"}:
                return "a signoff server runs there"
            case _:
                pass
    return "another program listens there"


async def stopped(listener: HttpListener, serving: asyncio.Task[None]) -> None:
    """Stop the server; requests in progress have a moment to finish."""
    listener.should_exit = True
    with suppress(asyncio.CancelledError):
        await serving
