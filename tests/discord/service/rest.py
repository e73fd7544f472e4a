"""The REST API, version 10: finds the route, checks who asks, keeps a log, and answers as Discord does."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aiohttp import BodyPartReader, hdrs, web
from tests.discord.service.faults import Faults
from tests.discord.service.interactions import Interactions
from tests.discord.service.refusal import Refusal, Unknown
from tests.discord.service.state import File, State
from tests.discord.service.world import Json

PREFIX = "/api/v10"


@dataclass
class Request:
    """A REST call as it was received."""

    method: str
    path: str
    route: str
    """The path with `{}` for every id: `/channels/{}/messages`."""
    payload: Any
    files: Sequence[File]
    query: Mapping[str, str]
    status: int = 0

    @property
    def name(self) -> str:
        return f"{self.method} {self.path}"


@dataclass
class Call:
    """What a handler is given."""

    state: State
    interactions: Interactions
    ids: tuple[str, ...]
    body: Any
    files: Sequence[File]
    query: Mapping[str, str]

    def fields(self, *known: str) -> Json:
        """The body, which must be an object with no field besides these."""
        body = self.body if self.body is not None else {}
        if not isinstance(body, dict):
            raise Unknown(400, 50109, "The request body contains invalid JSON.")
        unknown = set(body) - set(known)
        if unknown:
            raise Unknown(400, 50035, "Invalid Form Body", {"unknown": sorted(unknown)})
        return body

    def asks(self, *known: str) -> None:
        """The query may have these parameters and no others."""
        unknown = set(self.query) - set(known)
        if unknown:
            raise Unknown(400, 50035, "Invalid Form Body", {"unknown query": sorted(unknown)})


Handler = Callable[[Call], Any]


@dataclass
class Route:
    method: str
    path: str
    handler: Handler
    open: bool
    status: int
    pattern: re.Pattern[str]


class Routes:
    """The table of routes; `{}` is an id, `{token}` anything up to the next slash."""

    def __init__(self) -> None:
        self.table: list[Route] = []

    def add(self, method: str, path: str, *, open: bool = False, status: int = 200) -> Callable[[Handler], Handler]:
        """`open`: needs no bot token (the path itself holds a token). `status`: of an answer that is no error."""
        pattern = re.compile(re.escape(path).replace(r"\{\}", r"(\d+)").replace(r"\{token\}", r"([^/]+)") + r"\Z")

        def keep(handler: Handler) -> Handler:
            self.table.append(Route(method, path, handler, open, status, pattern))
            return handler

        return keep

    def find(self, method: str, path: str) -> tuple[Route, tuple[str, ...]]:
        methods: list[str] = []
        for route in self.table:
            if found := route.pattern.match(path):
                if route.method == method:
                    return route, found.groups()
                methods.append(route.method)
        if methods:
            raise Unknown(405, 0, "405: Method Not Allowed")
        raise Unknown(404, 0, "404: Not Found")


class Rest:
    """Serves the routes."""

    def __init__(self, state: State, interactions: Interactions, faults: Faults, routes: Sequence[Routes]) -> None:
        self._state = state
        self._interactions = interactions
        self._faults = faults
        self._routes = Routes()
        for table in routes:
            self._routes.table += table.table
        self.requests: list[Request] = []
        self.errors: list[str] = []
        self.refused: list[tuple[Request, Refusal]] = []

    async def serve(self, http: web.Request) -> web.StreamResponse:
        path = http.path.removeprefix(PREFIX)
        name = f"{http.method} {path}"
        if self._faults.is_out:
            return web.Response(status=503, text="upstream connect error", headers={hdrs.CONTENT_TYPE: "text/plain"})
        await self._faults.held(name, after=False)
        request = Request(http.method, path, "", None, (), dict(http.query))
        self.requests.append(request)
        self._state.touch()
        fault = self._faults.due(name)
        if fault is not None:
            request.status = fault.status
            return _json(fault.body, fault.status, fault.headers)
        response = await self._answer(http, request)
        request.status = response.status
        await self._faults.held(name, after=True)
        if self._faults.is_killed(name) and http.transport is not None:
            http.transport.abort()
        return response

    async def _answer(self, http: web.Request, request: Request) -> web.Response:
        try:
            request.payload, request.files = await _read(http)
            if not http.path.startswith(PREFIX):
                raise Unknown(404, 0, "404: Not Found")
            route, ids = self._routes.find(request.method, request.path)
            request.route = route.path
            self._check_token(http, route)
            headers, limited = self._limits(http, route, ids)
            if limited is not None:
                return _json(limited, 429, headers)
            call = Call(self._state, self._interactions, ids, request.payload, request.files, http.query)
            answer = route.handler(call)
        except Refusal as refusal:
            self.refused.append((request, refusal))
            if isinstance(refusal, Unknown):
                self.errors.append(f"{request.name}: {refusal}")
            self._state.touch()
            return _json(refusal.body(), refusal.status, {})
        except Exception:
            # A mistake of the stand-in itself, or a body of a shape it did not expect. No 500: those are retried.
            self.errors.append(f"{request.name}: {traceback.format_exc()}")
            self._state.touch()
            return _json({"message": "the stand-in failed, see service.errors", "code": 0}, 400, {})
        if answer is None:
            return web.Response(status=204, headers=headers)
        return _json(answer, route.status, headers)

    def _check_token(self, http: web.Request, route: Route) -> None:
        if route.open:
            return
        given = http.headers.get("Authorization")
        if given is None:
            raise Unknown(401, 0, "401: Unauthorized")
        if given != f"Bot {self._state.token}":
            raise Refusal(401, 0, "401: Unauthorized")
        if not http.headers.get("User-Agent", "").startswith("DiscordBot ("):
            raise Unknown(403, 40333, "internal network error")

    def _limits(self, http: web.Request, route: Route, ids: tuple[str, ...]) -> tuple[dict[str, str], Json | None]:
        """The headers about rate limits, and the body of the 429 if one was reached."""
        name = f"{route.method} {http.path.removeprefix(PREFIX)}"
        bucket = self._faults.bucket_of(name)
        mark = hashlib.sha256(f"{route.method} {route.path}".encode()).hexdigest()[:32]
        headers = {"X-RateLimit-Bucket": mark, "Via": "1.1 google"}
        if bucket is None:
            headers |= {"X-RateLimit-Limit": "1000", "X-RateLimit-Remaining": "999"}
            headers |= {"X-RateLimit-Reset-After": "1.000", "X-RateLimit-Reset": f"{time.time() + 1:.3f}"}
            return headers, None
        left, after = bucket.take(ids[0] if ids else "", asyncio.get_running_loop().time())
        headers |= {
            "X-RateLimit-Limit": str(bucket.limit),
            "X-RateLimit-Remaining": str(max(0, left)),
            "X-RateLimit-Reset-After": f"{after:.3f}",
            "X-RateLimit-Reset": f"{time.time() + after:.3f}",
        }
        if left >= 0:
            return headers, None
        headers |= {"X-RateLimit-Scope": "user", "Retry-After": str(max(1, round(after)))}
        return headers, {"message": "You are being rate limited.", "retry_after": round(after, 3), "global": False}


def _json(body: Any, status: int, headers: Mapping[str, str]) -> web.Response:
    """discord.py reads a body as JSON only where the type says exactly this, without a character set."""
    return web.Response(
        body=json.dumps(body).encode(), status=status, headers={**headers, hdrs.CONTENT_TYPE: "application/json"}
    )


async def _read(http: web.Request) -> tuple[Any, list[File]]:
    """The body: JSON, or a form with `payload_json` and `files[n]`."""
    if not http.can_read_body:
        return None, []
    try:
        if http.content_type == "application/json":
            return json.loads(await http.read()), []
        if http.content_type != "multipart/form-data":
            raise Unknown(400, 50109, f"a body of type {http.content_type}")
        payload, files = None, dict[int, File]()
        async for part in await http.multipart():
            if not isinstance(part, BodyPartReader):
                raise Unknown(400, 50109, "a form within a form")
            data = bytes(await part.read(decode=False))
            if part.name == "payload_json":
                payload = json.loads(data)
            elif found := re.fullmatch(r"files\[(\d+)\]", part.name or ""):
                files[int(found[1])] = (part.filename or "unknown", data)
            else:
                raise Unknown(400, 50109, f"a form field {part.name!r}")
    except ValueError:
        raise Unknown(400, 50109, "The request body contains invalid JSON.") from None
    return payload, [files[index] for index in sorted(files)]
