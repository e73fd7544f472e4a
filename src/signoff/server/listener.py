"""The socket that the server listens at, and the loop that answers there."""

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

GRACE = 3
"""Seconds that clients have to take their answers when the server ends."""
BACKLOG = 512
MOST_CONNECTIONS = 2_000
"""Clients that are connected at once; those who come then are sent away with 503."""
HEADERS_TAKE, BODY_TAKES = 10.0, 30.0
"""Seconds that a client has to send the head of a request, and all of it. Then it is hung up on."""


class HttpListener(uvicorn.Server):
    """A server whose end is decided by whoever runs it, and not by signals. It does not wait for slow requests."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._waiting: dict[Any, tuple[object, float]] = {}
        """By connection, of which a request is not there yet: the one before it, and since when."""

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
            request: Any = found.cycle  # the last one whose head is there
            has_head = request is not None and not request.response_complete
            if request is not None and has_head and not request.more_body:
                continue
            before, since = self._waiting.get(found, (request, now))
            waiting[found] = request, (since if before is request else now)
            if now - waiting[found][1] >= (BODY_TAKES if has_head else HEADERS_TAKE):
                found.transport.abort()
        self._waiting = waiting


def listener_for(app: ASGIApp, *, tls: tuple[str, str] | None = None) -> HttpListener:
    """What answers with this application. `tls`: files with a certificate and its key."""
    return HttpListener(
        uvicorn.Config(
            app,
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
    """A socket at this address, not listening yet. Raises `WrongUse`, which says who is there, where it is taken."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        # By its number: only then asyncio sends what is small at once, instead of 40 ms later.
        made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind((host, port))
            made.listen(BACKLOG)  # a port that somebody else listens at is refused here at the latest
        except BaseException:
            made.close()
            raise
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise WrongUse(f"{host}:{port} is in use: {_who(host, port)}\n  Choose another port with --port") from error
        raise WrongUse(f"cannot listen at {host}:{port}: {error.strerror or error}") from error
    return made


def url_of(made: socket.socket, *, tls: bool = False) -> str:
    """Where it is reached, for people."""
    host, port = made.getsockname()[:2]
    return f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port}"


def _who(host: str, port: int) -> str:
    """Who listens there, as far as they say."""
    with (
        closing(http.client.HTTPConnection(host, port, timeout=1)) as connection,
        suppress(OSError, ValueError, http.client.HTTPException),
    ):
        connection.request("GET", "/healthz")
        said: object = json.loads(connection.getresponse().read(10_000))
        match said:
            case {"service": "signoff", "pid": int(pid), "since": str(since)}:
                # Read as a moment: whatever listens there may write anything.
                return f"a signoff server runs there, process {pid}, since {moment_text(datetime.fromisoformat(since))}"
            case {"service": "signoff"}:
                return "a signoff server runs there"
            case _:
                pass
    return "another program listens there"


async def stopped(listener: HttpListener, serving: asyncio.Task[None]) -> None:
    """Have it end: what is being answered is answered first, for a moment."""
    listener.should_exit = True
    with suppress(asyncio.CancelledError):
        await serving
