"""The listening socket of the server, and the uvicorn server on it."""

from __future__ import annotations

import asyncio
import errno
import http.client
import json
import socket
from collections.abc import Generator
from contextlib import closing, contextmanager, nullcontext, suppress
from datetime import datetime
from time import monotonic
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from signoff.core.moment import moment_text
from signoff.errors import WrongUse
from signoff.server.security_headers import SECURITY
from signoff.server.sound_framing import SoundFraming

GRACE = 3
"""Seconds that clients have to receive their responses when the server stops (graceful shutdown)."""
BACKLOG = 512
MOST_CONNECTIONS = 2_000
"""Concurrent connections; more get 503, and those without a whole request are closed, the oldest first."""
HEADERS_TAKE, BODY_TAKES = 10.0, 30.0
"""Timeouts in seconds for the headers and for the whole request, and for reading a response. Then the connection is
closed."""


_SECURITY = (*SECURITY.items(), ("cache-control", "no-store"))


class _OneAtATime(H11Protocol):
    """Hangs up after a response if the next request was sent before it: one sender could queue any number of them.

    What uvicorn answers by itself has our headers, too: to what cannot be read (400) and is one too many (503).
    """

    def send_400_response(self, msg: str) -> None:
        headers = [("content-type", "text/plain; charset=utf-8"), ("connection", "close"), *_SECURITY]
        events = (
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=msg.encode("ascii")),
        )
        self.transport.write(b"".join(self.conn.send(one) or b"" for one in (*events, h11.EndOfMessage())))
        self.transport.close()

    def handle_events(self) -> None:
        most, before = self.limit_concurrency, self.cycle
        is_full = most is not None and max(len(self.connections), len(self.tasks)) >= most
        super().handle_events()
        if is_full and self.cycle is not before:
            added = [(name.encode(), value.encode()) for name, value in _SECURITY]
            self.cycle.default_headers = [*self.cycle.default_headers, *added]
        if self.conn.their_state is h11.DONE and self.conn.trailing_data[0]:
            self.cycle.keep_alive = False


class HttpListener(uvicorn.Server):
    """A server that closes connections of slow clients, and of too many."""

    def __init__(self, config: uvicorn.Config, *, signals: bool) -> None:
        """`signals`: signals stop it; otherwise only its caller does."""
        super().__init__(config)
        self._signals = signals
        self._waiting: dict[Any, tuple[object, float]] = {}
        """Connections without a complete request: the request before it, and since when."""
        self._unread: dict[Any, float] = {}
        """Connections whose response is not read, and since when."""

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        with super().capture_signals() if self._signals else nullcontext():
            yield

    async def on_tick(self, counter: int) -> bool:
        self._hang_up_on_slow(monotonic())
        return await super().on_tick(counter)

    def _hang_up_on_slow(self, now: float) -> None:
        waiting: dict[Any, tuple[object, float]] = {}
        unread: dict[Any, float] = {}
        for connection in self.server_state.connections:
            found: Any = connection
            if found.flow.write_paused:
                unread[found] = self._unread.get(found, now)
                if now - unread[found] >= BODY_TAKES:
                    found.transport.abort()
            request: Any = found.cycle  # the last request with complete headers
            has_head = request is not None and not request.response_complete
            if request is not None and has_head and not request.more_body:
                continue
            before, since = self._waiting.get(found, (request, now))
            waiting[found] = request, (since if before is request else now)
            if now - waiting[found][1] >= (BODY_TAKES if has_head else HEADERS_TAKE):
                found.transport.abort()
        self._waiting, self._unread = waiting, unread
        most, there = self.config.limit_concurrency or MOST_CONNECTIONS, len(self.server_state.connections)
        if there >= most:
            for found in sorted(waiting, key=lambda one: waiting[one][1])[: there - most // 2]:
                found.transport.abort()


def _room() -> int:
    """How many connections there may be. Raises this process's limit of open files where that is allowed."""
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return MOST_CONNECTIONS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * MOST_CONNECTIONS
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_CONNECTIONS if soft == resource.RLIM_INFINITY else min(MOST_CONNECTIONS, soft // 2)


def listener_for(
    app: ASGIApp, *, tls: tuple[str, str] | None = None, lifespan: bool = False, signals: bool = False
) -> HttpListener:
    """Return a server for this application. `tls`: files of a certificate and its key."""
    return HttpListener(
        uvicorn.Config(
            SoundFraming(app),
            http=_OneAtATime,  # whatever else is installed: this is what the tests attack
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            lifespan="on" if lifespan else "off",
            ws="none",
            timeout_graceful_shutdown=GRACE,
            limit_concurrency=_room(),
            ssl_certfile=tls[0] if tls else None,
            ssl_keyfile=tls[1] if tls else None,
        ),
        signals=signals,
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
            raise WrongUse(f"{host}:{port} is in use: {_who(host, port)}\n  Choose another port") from error
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
