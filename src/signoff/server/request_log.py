"""Middleware that gives each HTTP request an id, counts it and logs it, never with its content."""

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
"""Scope key of a request's id."""
LONGEST_PATH = 200
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_QUIET = frozenset({"/healthz", "/readyz", "/metrics"})
"""Polled by programs every few seconds, so logged only with a status from 500 on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredRequest:
    """A request that was answered. The query is left out, because it may be a sign-in link."""

    id: str
    method: str
    path: str
    status: int
    seconds: float
    error: str = ""
    """Class of an unexpected exception; its message may contain what somebody sent."""


@dataclass(slots=True)
class RequestLog:
    """ASGI middleware."""

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
