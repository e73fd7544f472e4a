"""Each request to the server is given an id, counted, and told to whoever keeps the log: never what was sent in it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from signoff.core.visible_text import visible
from signoff.server.meters import Meters

HEADER = "x-request-id"
REQUEST_ID = "signoff.request_id"
"""In the scope of a request: its id."""
LONGEST_PATH = 200
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_QUIET = frozenset({"/healthz", "/readyz", "/metrics"})
"""Asked for every few seconds by programs: nobody wants to read that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredRequest:
    """A request that was answered. Its query is left out: a link to sign in with is in one."""

    id: str
    method: str
    path: str
    status: int
    seconds: float
    error: str = ""
    """Which kind of error was not foreseen; its words may hold what somebody sent."""


@dataclass(slots=True)
class RequestLog:
    """Around the application."""

    app: ASGIApp
    meters: Meters
    tell: Callable[[AnsweredRequest], None]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        given = Headers(scope=scope).get(HEADER, "")
        name = given if _ID.fullmatch(given) else str(uuid4())
        status, began, error = 500, perf_counter(), ""

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[HEADER] = name
            await send(message)

        try:
            await self.app({**scope, REQUEST_ID: name}, receive, sending)
        except Exception as failed:
            error = type(failed).__name__
            raise
        finally:
            self.meters.answers[f"{status // 100}xx"] += 1
            path = str(scope["path"])
            if path not in _QUIET or status >= 500:
                shown = visible(path[:LONGEST_PATH])
                took = perf_counter() - began
                method = str(scope["method"])[:20]
                self.tell(
                    AnsweredRequest(
                        id=name, method=visible(method), path=shown, status=status, seconds=took, error=error
                    )
                )
