"""Health check, readiness check and metrics for operators. All three need no authentication."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC
from ipaddress import ip_address
from time import monotonic

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from signoff.core.request import State
from signoff.core.safe_text import error_line
from signoff.errors import SignoffError
from signoff.server.meters import MEDIA_TYPE
from signoff.server.state import ServerState

PATIENCE = 2.0
"""Timeout in seconds for the store."""
KEPT = 5.0
"""Seconds for which the number of waiting requests is cached."""


@dataclass(slots=True)
class WaitingCount:
    """The number of waiting requests by state, cached for a few seconds, with one count at a time."""

    state: ServerState
    _counts: Mapping[str, int] = field(default_factory=dict[str, int])
    _at: float | None = None
    _counting: asyncio.Task[None] | None = None

    async def now(self) -> Mapping[str, int]:
        if self._at is None or monotonic() - self._at > KEPT:
            if self._counting is None or self._counting.done():
                self._counting = asyncio.create_task(self._count())
                self._counting.add_done_callback(_looked_at)
            await asyncio.shield(self._counting)  # a caller that times out does not cancel the count for the others
        return self._counts

    async def _count(self) -> None:
        found = await self.state.broker.store.read(lambda tx: tx.listings.counts())
        self._counts = {str(State.PENDING): 0, str(State.UNKNOWN): 0, **found}
        self._at = monotonic()


def _looked_at(task: asyncio.Task[None]) -> None:
    """Retrieve the exception, because nobody may be waiting for the task any more."""
    if not task.cancelled():
        task.exception()


def operations(state: ServerState) -> list[Route]:
    """Return the routes."""
    waiting = WaitingCount(state)

    since = state.broker.clock.now().astimezone(UTC).isoformat(timespec="seconds")

    async def healthz(request: Request) -> Response:
        own = {"pid": os.getpid(), "since": since} if _is_here(request) else {}
        return JSONResponse({"status": "ok", "service": "signoff", **own})

    async def readyz(request: Request) -> Response:
        why = await _why_not(state)
        return JSONResponse({"status": "not ready", "why": why}, 503) if why else JSONResponse({"status": "ready"})

    async def metrics(request: Request) -> Response:
        try:
            counts = await asyncio.wait_for(waiting.now(), PATIENCE)
        except (SignoffError, TimeoutError):
            state.meters.store_errors += 1
            counts = dict[str, int]()
        return Response(state.meters.text(counts), media_type=MEDIA_TYPE)

    handlers = {"/healthz": healthz, "/readyz": readyz, "/metrics": metrics}
    return [Route(path, handler, methods=["GET"]) for path, handler in handlers.items()]


def _is_here(request: Request) -> bool:
    """Whether the request comes from this machine: others need not know the process id."""
    try:
        return request.client is not None and ip_address(request.client.host).is_loopback
    except ValueError:
        return False


async def _why_not(state: ServerState) -> str:
    """Why the server is not ready; empty if it is."""
    if state.stopping.is_set():
        return "the server is shutting down"
    try:
        await asyncio.wait_for(state.broker.store.read(lambda tx: tx.record.head()), PATIENCE)
        return await state.ready() if state.ready is not None else ""
    except TimeoutError:
        state.meters.store_errors += 1
        return "the store does not respond"
    except SignoffError as error:
        state.meters.store_errors += 1
        return f"the store failed: {error_line(error)}"
