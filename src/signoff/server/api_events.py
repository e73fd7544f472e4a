"""API endpoints for events: as server-sent events (SSE), and as a long poll for clients that cannot read a stream."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from signoff.core.access import Permission
from signoff.core.safe_text import error_line
from signoff.errors import StoreError
from signoff.server.endpoint import ApiModel, Endpoint, Nothing, Visit, not_signed_in
from signoff.server.identity import is_still_admitted
from signoff.server.live_events import CROWDED, LiveEvent, LiveEvents, Told, frame, named_frame
from signoff.server.problem import ProblemRaised

LONGEST_POLL = 60.0
"""The longest long poll, in seconds."""
RESUME_HEADER = "last-event-id"
_NUMBER = 2**62
_log = logging.getLogger("signoff.server")


@dataclass(frozen=True, slots=True)
class StreamTimes:
    """In seconds: the heartbeat interval, how often the client's access is checked again, and the timeout of a send."""

    heartbeat: float = 15.0
    allowed: float = 5.0
    send: float = 20.0


TIMES = StreamTimes()


class EventQuery(ApiModel):
    """From where on."""

    after: int | None = Field(
        default=None,
        ge=0,
        le=_NUMBER,
        description="The last event you have seen. The header `Last-Event-ID` takes precedence.",
    )


class PollQuery(ApiModel):
    """From where on, and how long to wait."""

    after: int | None = Field(
        default=None, ge=0, le=_NUMBER, description="`next` of the previous poll; without it, polling starts now."
    )
    wait: float = Field(default=25.0, ge=0, le=LONGEST_POLL, description="Seconds.", allow_inf_nan=False)


class LiveEventView(ApiModel):
    """An event: what to reload."""

    seq: int
    kind: str
    request: str = ""
    run: str = ""
    at: str = ""
    title: str = ""


class PollView(ApiModel):
    """The events since the last poll."""

    events: list[LiveEventView]
    next: int = Field(description="The `after` of the next poll.")
    reset: bool = Field(
        description="There is no event with this number: the store is another one, so reload everything."
    )


async def stream_events(visit: Visit[EventQuery, Nothing]) -> Response:
    if visit.request.method == "HEAD":
        return Response(media_type="text/event-stream")
    _refuse_crowd(visit)
    after, holder = _resumed(visit.request, visit.query.after), visit.identity.holder
    return EventStream(visit.state.live, after, allowed_check(visit), holder=holder)


async def poll_events(visit: Visit[PollQuery, Nothing]) -> PollView:
    _refuse_crowd(visit)
    query, until = visit.query, monotonic() + visit.query.wait
    async with visit.state.live.listening(query.after, visit.identity.holder) as listener:
        events: list[LiveEvent] = []
        while query.after is not None and not listener.is_reset and not events and not listener.ended:
            told = await listener.read(max(0.0, until - monotonic()))
            events = [one for one in told if isinstance(one, LiveEvent)]
            if monotonic() >= until:
                break
        if not await allowed_check(visit)():  # it may have waited for a minute
            raise not_signed_in()
        views = [LiveEventView(**one.data) for one in events]
        return PollView(events=views, next=listener.after, reset=listener.is_reset)


def _refuse_crowd(visit: Visit[Any, Any]) -> None:
    if visit.state.live.is_full(visit.identity.holder):
        raise ProblemRaised(429, "too-many", CROWDED, headers={"Retry-After": "30"})


def _resumed(request: Request, after: int | None) -> int | None:
    """The event to resume after: from the `Last-Event-ID` header, else from the query."""
    said = request.headers.get(RESUME_HEADER, "").strip()
    if not said:
        return after
    if not (said.isascii() and said.isdecimal() and len(said) < 19):
        raise ProblemRaised(422, "invalid", "Last-Event-ID is not an event number")
    return int(said)


def allowed_check(visit: Visit[Any, Any]) -> Callable[[], Awaitable[bool]]:
    """Return a function that says whether the listener still has access: a revoked key ends the stream."""
    return lambda: is_still_admitted(visit.state.identify, visit.request, visit.identity, Permission.READ)


class EventStream(Response):
    """A stream of events to one client, until it disconnects, is too slow, loses access, or the server stops."""

    media_type = "text/event-stream"

    def __init__(
        self,
        live: LiveEvents,
        after: int | None,
        still_allowed: Callable[[], Awaitable[bool]],
        times: StreamTimes | None = None,
        *,
        holder: str = "",
    ) -> None:
        super().__init__(headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._live = live
        self._after = after
        self._holder = holder
        self._still_allowed = still_allowed
        self._times = times or TIMES

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        tasks = [asyncio.create_task(self._stream(send)), asyncio.create_task(_left(receive))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _stream(self, send: Send) -> None:
        async def say(text: str, *, more: bool = True) -> None:
            async with asyncio.timeout(self._times.send):  # a client that does not read is dropped
                await send({"type": "http.response.body", "body": text.encode(), "more_body": more})

        with suppress(TimeoutError):
            try:
                why = await self._tell(say)
            except StoreError as error:
                _log.warning("the event stream of a client failed: %s", error_line(error))
                why = "the store cannot be read now"
            await say(named_frame("closed", {"reason": why}))
            await say("", more=False)

    async def _tell(self, say: Callable[[str], Awaitable[None]]) -> str:
        """Send events; return why the stream ends."""
        checked = said = monotonic()
        async with self._live.listening(self._after, self._holder) as listener:
            name = "reset" if listener.is_reset else "begin"
            await say("retry: 2000\n\n" + named_frame(name, {"seq": listener.after}, seq=listener.after))
            while True:
                told = await listener.read(min(self._times.allowed, self._times.heartbeat))
                now = monotonic()
                if now - checked >= self._times.allowed or any(map(_takes_away, told)):
                    checked = now
                    if not await self._still_allowed():
                        return "you are no longer signed in"
                if told:
                    await say("".join(map(frame, told)))
                    said = now
                elif listener.ended:
                    return listener.ended
                elif now - said >= self._times.heartbeat:
                    await say(": still here\n\n")
                    said = now


def _takes_away(told: Told) -> bool:
    return isinstance(told, LiveEvent) and told.kind == "access revoked"


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/events",
        name="stream_events",
        about="Stream events as server-sent events. The id of an event is its number in the audit log; a client that "
        "reconnects with `Last-Event-ID` gets exactly what it missed.",
        permission=Permission.READ,
        handle=stream_events,
        query=EventQuery,
        media_type="text/event-stream",
        tag="events",
    ),
    Endpoint(
        method="GET",
        path="/events/poll",
        name="poll_events",
        about="Poll for events, for clients that cannot read a stream. Responds as soon as there are events, or with "
        "none after the wait.",
        permission=Permission.READ,
        handle=poll_events,
        query=PollQuery,
        returns=PollView,
        tag="events",
    ),
)
